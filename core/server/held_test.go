package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/completion"
	"calla/core/grammar"
	"calla/core/schema"
)

// TestHeldRequests holds what each API's fields ask of the completion.
func TestHeldRequests(t *testing.T) {
	f := &fake{play: always(say("{}"))}
	url := testServer(t, f)
	const (
		chatPath, responsesPath, messagesPath = "/v1/chat/completions", "/v1/responses", "/v1/messages"

		chatTools      = `"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g","strict":true}}]`
		responsesTools = `"tools":[{"type":"function","name":"f"},{"type":"function","name":"g","strict":true}]`
		messagesTools  = `"tools":[{"name":"f","input_schema":{}},{"name":"g","input_schema":{},"strict":true}]`
	)
	type wanted struct {
		Answer               string
		Strict               []bool
		MustCall, SingleCall bool
		Callee               string
		Tools                int
	}
	strict := []bool{false, true}
	for _, tt := range []struct {
		path, fields string
		want         wanted
	}{
		{chatPath, `"response_format":{"type":"text"}`, wanted{}},
		{chatPath, `"response_format":{"type":"json_object"}`, wanted{Answer: string(schema.AnyObject)}},
		{chatPath, `"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","strict":true,"schema":{"type":"null"}}}`, wanted{Answer: `{"type":"null"}`}},
		{chatPath, chatTools, wanted{Tools: 2, Strict: strict}},
		{chatPath, chatTools + `,"tool_choice":"required","parallel_tool_calls":false`, wanted{Tools: 2, Strict: strict, MustCall: true, SingleCall: true}},
		{chatPath, chatTools + `,"tool_choice":{"type":"function","function":{"name":"g"}}`, wanted{Tools: 2, Strict: strict, MustCall: true, Callee: "g"}},
		{chatPath, chatTools + `,"tool_choice":"none"`, wanted{}},
		{responsesPath, `"text":{"format":{"type":"json_object"}}`, wanted{Answer: string(schema.AnyObject)}},
		{responsesPath, `"text":{"format":{"type":"json_schema","name":"n","strict":false,"schema":{"type":"null"}}}`, wanted{Answer: `{"type":"null"}`}},
		{responsesPath, responsesTools + `,"tool_choice":"required"`, wanted{Tools: 2, Strict: strict, MustCall: true}},
		{responsesPath, responsesTools + `,"tool_choice":{"type":"function","name":"f"},"parallel_tool_calls":true`, wanted{Tools: 2, Strict: strict, MustCall: true, Callee: "f"}},
		{messagesPath, `"output_config":{"format":{"type":"json_schema","schema":{"type":"null"}}}`, wanted{Answer: `{"type":"null"}`}},
		{messagesPath, messagesTools + `,"tool_choice":{"type":"any"}`, wanted{Tools: 2, Strict: strict, MustCall: true}},
		{messagesPath, messagesTools + `,"tool_choice":{"type":"tool","name":"g","disable_parallel_tool_use":true}`, wanted{Tools: 2, Strict: strict, MustCall: true, Callee: "g", SingleCall: true}},
		{messagesPath, messagesTools + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, wanted{Tools: 2, Strict: strict, SingleCall: true}},
	} {
		body := map[string]string{chatPath: helloWith(tt.fields), responsesPath: `{"model":"served","input":"Hi",` + tt.fields + `}`, messagesPath: claudeWith(tt.fields)}[tt.path]
		if r := post(t, url+tt.path, body); r.status != 200 {
			t.Errorf("%s %s: %d %s", tt.path, tt.fields, r.status, r.body)
			continue
		}
		r := f.last(t)
		got := wanted{string(r.Answer), r.Strict, r.MustCall, r.SingleCall, r.Callee, len(r.Tools)}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s %s: %s", tt.path, tt.fields, d)
		}
	}
}

// TestSchemaFaultsNameTheField: what is wrong with a schema is said with the
// request's own names, for each API.
func TestSchemaFaultsNameTheField(t *testing.T) {
	answer := &schema.Error{Tool: -1, At: "properties.a.multipleOf", Fault: "this keyword is not supported"}
	tool := &schema.Error{Tool: 2, At: "properties.b.not", Fault: "this keyword is not supported"}
	for _, tt := range []struct {
		path  string
		err   error
		param string
	}{
		{"/v1/chat/completions", answer, "response_format.json_schema.schema.properties.a.multipleOf"},
		{"/v1/chat/completions", tool, "tools[2].function.parameters.properties.b.not"},
		{"/v1/chat/completions", &schema.Error{Tool: -1, Fault: "nothing fits it"}, "response_format.json_schema.schema"},
		{"/v1/chat/completions", fmt.Errorf("engine: %w", grammar.ErrAmbiguous), "response_format.json_schema.schema"},
		{"/v1/responses", answer, "text.format.schema.properties.a.multipleOf"},
		{"/v1/responses", tool, "tools[2].parameters.properties.b.not"},
		{"/v1/messages", answer, "output_config.format.schema.properties.a.multipleOf"},
		{"/v1/messages", tool, "tools[2].input_schema.properties.b.not"},
	} {
		f := &fake{play: func(completion.Request) ([]moment, error) { return nil, tt.err }}
		body := map[string]string{"/v1/chat/completions": hello, "/v1/responses": `{"model":"served","input":"Hi"}`, "/v1/messages": helloClaude}[tt.path]
		r := post(t, testServer(t, f)+tt.path, body)
		if r.status != 400 || !strings.Contains(r.body, tt.param) {
			t.Errorf("%s %v: %d %s, want %s", tt.path, tt.err, r.status, r.body, tt.param)
		}
	}
}

// TestResponsesShowWhatTheyAreHeldTo: a response repeats the format, the choice
// and whether several calls may come.
func TestResponsesShowWhatTheyAreHeldTo(t *testing.T) {
	const format = `{"type":"json_schema","name":"n","schema":{"type":"null"},"strict":true}`
	const choice = `{"type":"function","name":"f"}`
	r := post(t, testServer(t, &fake{play: always(say("null"))})+"/v1/responses",
		`{"model":"served","input":"Hi","text":{"format":`+format+`},"tools":[{"type":"function","name":"f"}],"tool_choice":`+choice+`,"parallel_tool_calls":false}`)
	var got struct {
		Text     struct{ Format json.RawMessage }
		Choice   json.RawMessage `json:"tool_choice"`
		Parallel bool            `json:"parallel_tool_calls"`
	}
	r.into(t, &got)
	if string(got.Text.Format) != format || string(got.Choice) != choice || got.Parallel {
		t.Errorf("format %s, choice %s, parallel %v", got.Text.Format, got.Choice, got.Parallel)
	}
}
