package chat

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func readPython(t testing.TB) (cases [][2]*string, space []rune) {
	t.Helper()
	raw, err := os.ReadFile("testdata/python_json.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Space []rune
		Cases [][2]*string
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return file.Cases, file.Space
}

// What Python accepts and this package refuses.
func stricter(in string) bool {
	return strings.Contains(in, "NaN") || strings.Contains(in, "Infinity") ||
		strings.HasPrefix(strings.ToLower(in), `"\ud`) // the pairs among them are looked at apart
}

func TestPrintsAsPython(t *testing.T) {
	cases, _ := readPython(t)
	for _, c := range cases {
		in, want := *c[0], c[1]
		got, err := pythonJSON(in)
		switch {
		case err != nil && want != nil && !stricter(in):
			t.Errorf("%.80q: %v, want %.80q", in, err, *want)
		case err == nil && want == nil:
			t.Errorf("%.80q gives %.80q, Python refuses it", in, got)
		case err == nil && got != *want:
			t.Errorf("%.80q gives %.80q, want %.80q", in, got, *want)
		}
	}
}

func TestSurrogates(t *testing.T) {
	for in, want := range map[string]string{
		`"\ud83e\udd8a"`: "🦊", `"\uD83E\uDD8A!"`: "🦊!",
		`"\ud83e"`: "", `"\udd8a"`: "", `"\ud83e\ud83e"`: "", `"\ud83ex"`: "", `"\udd8a\ud83e"`: "", `"\ud83e\u0041"`: "", `"\ud83e\n"`: "",
	} {
		got, err := pythonJSON(in)
		if want == "" && err == nil || want != "" && got != `"`+want+`"` {
			t.Errorf("%s gives %q, %v; want %q", in, got, err, want)
		}
	}
}

func TestStripsAsPython(t *testing.T) {
	_, space := readPython(t)
	white := map[rune]bool{}
	for _, r := range space {
		white[r] = true
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if utf8.ValidRune(r) && isPythonSpace(r) != white[r] {
			t.Errorf("%U is white space: %t, want %t", r, isPythonSpace(r), white[r])
		}
	}
}

func TestDepthBound(t *testing.T) {
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	if _, err := pythonJSON(deep(maxJSONDepth)); err != nil {
		t.Errorf("%d deep: %v", maxJSONDepth, err)
	}
	if _, err := pythonJSON(deep(maxJSONDepth + 1)); err == nil {
		t.Errorf("%d deep: no error", maxJSONDepth+1)
	}
	if _, err := pythonJSON("[" + strings.Repeat("[],", 1000) + "[]]"); err != nil {
		t.Errorf("wide and flat: %v", err)
	}
}

// Whatever a client sends as JSON, a prompt or an error comes out, and what is
// printed says the same again.
func FuzzClientJSON(f *testing.F) {
	cases, _ := readPython(f)
	for _, c := range cases {
		f.Add(*c[0])
	}
	f.Add(`{"a":{"b":[1,2.50,"x"]},"a":{"c":1e400}}`)
	f.Fuzz(func(t *testing.T, in string) {
		raw := json.RawMessage(in)
		user := Message{Role: "user", Content: Text("x")}
		p, err := Render([]Message{user}, Options{Tools: []json.RawMessage{raw}})
		if err == nil && !utf8.ValidString(joined(p.Segments)) {
			t.Errorf("%q is rendered as invalid UTF-8", in)
		}
		if printed, err := pythonJSON(in); err == nil {
			if !json.Valid(raw) {
				t.Errorf("%q is accepted and is no JSON", in)
			}
			again, err := pythonJSON(printed)
			if again != printed && !strings.Contains(printed, "Infinity") {
				t.Errorf("%q prints as %q and that as %q, %v", in, printed, again, err)
			}
		}
		if printed, err := relaxedJSON(in); err == nil && !json.Valid([]byte(printed)) {
			t.Errorf("%q is made into %q, which is no JSON", in, printed)
		}
		Render([]Message{user, {Role: "assistant", ToolCalls: []ToolCall{{Name: "f", Arguments: raw}}}}, Options{})
		if parts, err := ParseContent(raw, "content"); err == nil {
			Render([]Message{{Role: "user", Content: parts}}, Options{})
		}
	})
}
