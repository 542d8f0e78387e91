package clients

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// parseQuestion is one question to a script that has the SDK parse the answer.
type parseQuestion struct {
	Model     string            `json:"model"`
	Messages  []message         `json:"messages"`
	Stream    bool              `json:"stream"`
	Responses bool              `json:"responses"` // OpenAI's newer API
	Tools     []json.RawMessage `json:"tools,omitempty"`
}

// TestParse has the SDKs' own helpers make objects of a class of the answer. They
// fail where the answer does not fit their schema, so the model, which knows
// nothing of most of the members, has to be held to it.
func TestParse(t *testing.T) {
	extract := []message{{"user", "Extract name, age and city as JSON.\nMaria is 34 years old, lives in Lisbon and works as a pilot. Maria likes chess and has a owl."}}
	weather := caseOf(t, "tool-call")
	for _, p := range []struct {
		name string
		open func(*testing.T, string) client
	}{
		{"openai-python with Pydantic", python("openai_parse.py")},
		{"openai-node with Zod", node("openai_parse.mjs")},
	} {
		t.Run(p.name, func(t *testing.T) {
			script := p.open(t, served.URL+"/v1").(*scripted)
			ids, err := script.models(limited(t))
			if err != nil {
				t.Fatal(err)
			}
			for _, tt := range []struct {
				name string
				ask  parseQuestion
				want map[string]any // of what the model can know
			}{
				{"whole", parseQuestion{Messages: extract}, map[string]any{"name": "Maria", "age": 34.0}},
				{"streamed", parseQuestion{Messages: extract, Stream: true}, map[string]any{"name": "Maria", "age": 34.0}},
				{"responses", parseQuestion{Messages: extract, Responses: true}, map[string]any{"name": "Maria", "age": 34.0}},
				{"a tool that must be called", parseQuestion{Messages: weather.Messages, Tools: weather.Tools[:1]}, map[string]any{"city": "Oslo"}},
			} {
				t.Run(tt.name, func(t *testing.T) {
					tt.ask.Model = ids[0]
					var got map[string]any
					if err := script.ask(limited(t), tt.ask, &got); err != nil {
						t.Fatal(err)
					}
					for name, want := range tt.want {
						if d := cmp.Diff(want, got[name]); d != "" {
							t.Errorf("%s of %v (-want +got):\n%s", name, got, d)
						}
					}
				})
			}
		})
	}
}
