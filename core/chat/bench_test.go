package chat

import (
	"encoding/json"
	"strings"
	"testing"
)

// A token's share of the server's time must stay far below that of its event.
func BenchmarkParseToken(b *testing.B) {
	for _, bb := range []struct{ name, opening, token string }{
		{"content", "", " word"},
		{"argument", "\n<function=weather>\n<parameter=city>\n", " word"},
		{"markup-like argument", "\n<function=weather>\n<parameter=city>\n", "\n</parameter>\n<"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			p := NewParser(bothTools, false)
			if bb.opening != "" {
				p.Control(CallStart)
				p.Text(bb.opening)
			}
			b.ReportAllocs()
			for b.Loop() {
				p.Text(bb.token)
			}
		})
	}
}

func BenchmarkRender(b *testing.B) {
	code := strings.Repeat("if a < b && c[i] != \"x\" {\n\treturn nil\n}\n", 100)
	arguments, err := json.Marshal(map[string]string{"path": "a.go", "text": code})
	if err != nil {
		b.Fatal(err)
	}
	messages := []Message{{Role: "user", Content: Text("Write it.")}}
	for range 60 {
		messages = append(messages,
			Message{Role: "assistant", ToolCalls: []ToolCall{{Name: "write", Arguments: arguments}}},
			Message{Role: "tool", Content: Text(code)})
	}
	p, err := Render(messages, Options{Tools: bothTools})
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(joined(p.Segments))))
	for b.Loop() {
		if _, err := Render(messages, Options{Tools: bothTools}); err != nil {
			b.Fatal(err)
		}
	}
}
