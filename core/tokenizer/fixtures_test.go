package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// tinyDir and demoDir hold the tokenizers that the repository comes with.
const (
	tinyDir = "../conform/testdata/tiny"
	demoDir = "../../bundle/demo"
)

// load loads the tokenizer of a folder.
func load(tb testing.TB, dir string) *Tokenizer {
	tb.Helper()
	t, err := Load(readFile(tb, dir, "tokenizer.json"), readFile(tb, dir, "tokenizer_config.json"))
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func readFile(tb testing.TB, elem ...string) []byte {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

func readJSON(tb testing.TB, v any, elem ...string) {
	tb.Helper()
	if err := json.Unmarshal(readFile(tb, elem...), v); err != nil {
		tb.Fatalf("%s: %v", filepath.Join(elem...), err)
	}
}

func TestTinyFixture(t *testing.T) {
	var cases []struct {
		Text    string  `json:"text"`
		IDs     []int32 `json:"ids"`
		Decoded string  `json:"decoded"`
		Skipped string  `json:"decoded_skip_special"`
	}
	readJSON(t, &cases, tinyDir, "cases", "tokenizer_cases.json")
	tok := load(t, tinyDir)
	for _, tt := range cases {
		if diff := cmp.Diff(tt.IDs, tok.EncodeWithAdded(tt.Text)); diff != "" {
			t.Errorf("EncodeWithAdded(%q): -want +got\n%s", tt.Text, diff)
		}
		if got := tok.Decode(tt.IDs, false); got != tt.Decoded {
			t.Errorf("Decode(%v, false) = %q, want %q", tt.IDs, got, tt.Decoded)
		}
		if got := tok.Decode(tt.IDs, true); got != tt.Skipped {
			t.Errorf("Decode(%v, true) = %q, want %q", tt.IDs, got, tt.Skipped)
		}
	}
}

func TestDemoFixture(t *testing.T) {
	var expected struct {
		Cases []struct {
			Name      string  `json:"name"`
			Prompt    string  `json:"prompt"`
			PromptIDs []int32 `json:"prompt_ids"`
			Output    string  `json:"output"`
			OutputIDs []int32 `json:"output_ids"`
		} `json:"cases"`
	}
	readJSON(t, &expected, "../conform/testdata/demo/expected.json")
	tok := load(t, demoDir)
	for _, tt := range expected.Cases {
		t.Run(tt.Name, func(t *testing.T) {
			if diff := cmp.Diff(tt.PromptIDs, tok.EncodeWithAdded(tt.Prompt)); diff != "" {
				t.Errorf("EncodeWithAdded(%q): -want +got\n%s", tt.Prompt, diff)
			}
			if got := tok.Decode(tt.OutputIDs, true); got != tt.Output {
				t.Errorf("Decode(%v, true) = %q, want %q", tt.OutputIDs, got, tt.Output)
			}
		})
	}
}
