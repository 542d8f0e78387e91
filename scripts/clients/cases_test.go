package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// conversation is a case of expected.json: what the demo model answers, as
// another implementation computed it.
type conversation struct {
	Name      string
	Messages  []message
	Tools     []json.RawMessage
	Thinking  bool    `json:"enable_thinking"`
	Prompt    []int   `json:"prompt_ids"`
	Answer    []int   `json:"output_ids"` // stop token included
	Text      string  `json:"output"`
	MinMargin float64 `json:"min_margin"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// nearTie is the margin between the two best logits below which another order
// of summation may choose the other token.
const nearTie = 0.05

// turns returns how often a person speaks.
func (c conversation) turns() (n int) {
	for _, m := range c.Messages {
		if m.Role == "user" {
			n++
		}
	}
	return n
}

// thoughtAndText takes the answer of a conversation with thinking apart.
func (c conversation) thoughtAndText(t *testing.T) (thought, text string) {
	t.Helper()
	thought, text, ok := strings.Cut(c.Text, "</think>")
	if !ok || !c.Thinking {
		t.Fatalf("%s has no thought", c.Name)
	}
	return strings.TrimSpace(thought), strings.TrimSpace(text)
}

// everything returns all cases.
func everything(t *testing.T) []conversation {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, "core/conform/testdata/demo/expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []conversation }
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatalf("parse expected.json: %v", err)
	}
	return file.Cases
}

// caseOf returns the case of a name. Each of its tokens is clear.
func caseOf(t *testing.T, name string) conversation {
	t.Helper()
	all := everything(t)
	i := slices.IndexFunc(all, func(c conversation) bool { return c.Name == name })
	if i < 0 || all[i].MinMargin < nearTie {
		t.Fatalf("expected.json has no case %s, or an unclear one", name)
	}
	return all[i]
}

// conversations returns the cases that a plain chat request can ask for: those
// without tools and thinking, whose every token is clear. Given names, it
// returns these alone.
func conversations(t *testing.T, names ...string) []conversation {
	t.Helper()
	var out []conversation
	for _, c := range everything(t) {
		plain := len(c.Tools) == 0 && !c.Thinking && c.MinMargin >= nearTie
		if plain && (len(names) == 0 || slices.Contains(names, c.Name)) {
			out = append(out, c)
		}
	}
	if want := max(len(names), 1); len(out) < want {
		t.Fatalf("expected.json has %d of the cases %q, want %d", len(out), names, want)
	}
	return out
}
