package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
)

const helloClaude = `{"model":"served","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`

func claudeWith(fields string) string {
	return strings.TrimSuffix(helloClaude, "}") + "," + fields + "}"
}

// TestMessagesInput holds Anthropic's blocks against the messages that they
// become.
func TestMessagesInput(t *testing.T) {
	user := chat.Message{Role: "user", Content: chat.Text("Hi")}
	for _, tt := range []struct {
		name, fields string
		want         []chat.Message
	}{
		{"text", `"messages":[{"role":"user","content":"Hi"}]`, []chat.Message{user}},
		{"system", `"system":"S","messages":[{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]`,
			[]chat.Message{{Role: "system", Content: chat.Text("S")}, user}},
		{"system in blocks", `"system":[{"type":"text","text":"A"},{"type":"text","text":"B","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"Hi"}]`,
			[]chat.Message{{Role: "system", Content: []chat.Part{{Text: "A"}, {Text: "\n\n"}, {Text: "B"}}}, user}},
		{"Claude Code's bill", `"system":[{"type":"text","text":"x-anthropic-billing-header: cc_version=1; cch=abcde;"},{"type":"text","text":"A"}],"messages":[{"role":"user","content":"Hi"}]`,
			[]chat.Message{{Role: "system", Content: chat.Text("A")}, user}},
		{"the bill as a first line", `"system":"x-anthropic-billing-header: cch=abcde;\nA","messages":[{"role":"user","content":"Hi"}]`,
			[]chat.Message{{Role: "system", Content: chat.Text("A")}, user}},
		{"the same words elsewhere", `"messages":[{"role":"user","content":"x-anthropic-billing-header: a"}]`,
			[]chat.Message{{Role: "user", Content: chat.Text("x-anthropic-billing-header: a")}}},
		{"a turn that thinks, speaks and calls", `"messages":[
			{"role":"user","content":"Hi"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":""},{"type":"text","text":"Well"},
				{"type":"tool_use","id":"t1","name":"f","input":{"b": 1, "a": [2]}},{"type":"tool_use","id":"t2","name":"g","input":{}}]},
			{"role":"user","content":[
				{"type":"tool_result","tool_use_id":"t2","content":"two","is_error":true},
				{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"o"},{"type":"text","text":"ne"}]},
				{"type":"text","text":"Hi"}]}]`,
			[]chat.Message{user,
				{Role: "assistant", Reasoning: thought("hm"), Content: chat.Text("Well"), ToolCalls: []chat.ToolCall{
					{Name: "f", Arguments: json.RawMessage(`{"b": 1, "a": [2]}`)}, {Name: "g", Arguments: json.RawMessage("{}")}}},
				{Role: "tool", Content: []chat.Part{{Text: "o"}, {Text: "ne"}}}, {Role: "tool", Content: []chat.Part{{Text: "Error: "}, {Text: "two"}}}, user}},
		{"result without content", `"messages":[{"role":"user","content":"Hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"t"}]}]`,
			[]chat.Message{user, {Role: "assistant", ToolCalls: []chat.ToolCall{{Name: "f", Arguments: json.RawMessage("{}")}}}, {Role: "tool"}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{play: always(say("ok"))}
			if r := post(t, testServer(t, f)+"/v1/messages", `{"model":"served","max_tokens":5,`+tt.fields+"}"); r.status != 200 {
				t.Fatalf("status %d: %s", r.status, r.body)
			}
			if d := cmp.Diff(tt.want, f.last(t).Messages); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestMessagesRequests(t *testing.T) {
	own := engine.Sampling{Temperature: 1, TopK: 20, TopP: 0.95}
	for _, tt := range []struct {
		name, fields string
		want         completion.Request
	}{
		{"defaults said", `"stream":false,"service_tier":"auto","metadata":{"user_id":"u"},"tool_choice":{"type":"auto"},"cache_control":{"type":"ephemeral"}`, completion.Request{}},
		{"thinking", `"thinking":{"type":"enabled","budget_tokens":1024}`, completion.Request{Thinking: true, ThinkingBudget: 1024, Sampling: own}},
		{"thinking off", `"thinking":{"type":"disabled"}`, completion.Request{}},
		{"adaptive", `"thinking":{"type":"adaptive"}`, completion.Request{Thinking: true, Sampling: own}},
		{"adaptive with an effort", `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}`, completion.Request{Thinking: true, ThinkingBudget: 2048, Sampling: own}},
		{"effort above the budget", `"thinking":{"type":"enabled","budget_tokens":1024},"output_config":{"effort":"max"}`, completion.Request{Thinking: true, ThinkingBudget: 1024, Sampling: own}},
		{"stops", `"stop_sequences":["a","b","c","d","e"]`, completion.Request{Stop: []string{"a", "b", "c", "d", "e"}}},
		{"sampling", `"temperature":0.3,"top_p":0.9,"top_k":4`, completion.Request{Sampling: engine.Sampling{Temperature: 0.3, TopP: 0.9, TopK: 4}}},
		{"tools", `"tools":[{"name":"f","description":"d","input_schema":{"type":"object","properties":{"b":{},"a":{}}},"cache_control":{"type":"ephemeral"}}]`,
			completion.Request{Tools: []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"b":{},"a":{}}}}}`)}}},
		{"tools that must not be called", `"tools":[{"type":"custom","name":"f","input_schema":{}}],"tool_choice":{"type":"none"}`, completion.Request{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{play: always(say("ok"))}
			if r := post(t, testServer(t, f)+"/v1/messages", claudeWith(tt.fields)); r.status != 200 {
				t.Fatalf("status %d: %s", r.status, r.body)
			}
			want := tt.want
			want.Messages, want.MaxTokens, want.LogProbs = []chat.Message{{Role: "user", Content: chat.Text("Hello")}}, 50, engine.NoLogProbs
			if d := cmp.Diff(want, f.last(t)); d != "" {
				t.Error(d)
			}
		})
	}
}

// claudeFault returns the type and message of an error object of Anthropic's.
func claudeFault(t *testing.T, r reply) (kind, message string) {
	t.Helper()
	var body struct {
		Type  string
		Error struct{ Type, Message string }
	}
	r.into(t, &body)
	if body.Type != "error" || body.Error.Message == "" {
		t.Fatalf("no error object of Anthropic's: %s", r.body)
	}
	return body.Error.Type, body.Error.Message
}

func TestMessagesRefuse(t *testing.T) {
	url := testServer(t, &fake{play: always(say("x"))})
	for _, tt := range []struct{ body, message string }{
		{`{"model":"served","messages":[{"role":"user","content":"x"}]}`, "max_tokens is required"},
		{`{"model":"served","max_tokens":5,"messages":[]}`, "messages has 0 items"},
		{claudeWith(`"temperature":1.5`), "temperature is out of range"},
		{claudeWith(`"top_k":-1`), "top_k is out of range"},
		{claudeWith(`"n":2`), "n is not a field here"},
		{claudeWith(`"betas":["x"]`), "betas is not a field"},
		{claudeWith(`"context_management":{"edits":[]}`), "context_management is not supported"},
		{claudeWith(`"container":"c"`), "container is not supported"},
		{claudeWith(`"tool_choice":{"type":"any"}`), "tool_choice asks for a call, and there are no tools"},
		{claudeWith(`"tool_choice":{"type":"tool"}`), "tool_choice.name is required"},
		{claudeWith(`"tools":[{"type":"web_search_20250305","name":"web_search"}]`), "tools[0].type"},
		{claudeWith(`"thinking":{"type":"enabled"}`), "thinking.budget_tokens is required"},
		{claudeWith(`"thinking":{"type":"enabled","budget_tokens":0}`), "thinking.budget_tokens is out of range"},
		{claudeWith(`"thinking":{"type":"adaptive","display":"omitted"}`), "thinking.display"},
		{claudeWith(`"output_config":{"effort":"low"}`), "output_config.effort bounds the thought, and thinking is off"},
		{claudeWith(`"output_config":{"format":{"type":"json_schema"}}`), "output_config.format.schema is required"},
		{`{"model":"served","max_tokens":5,"messages":[{"role":"user","content":[{"type":"image","source":{}}]}]}`, "messages[0].content[0].type"},
		{`{"model":"served","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":"He"}]}`, "messages[1].role"},
		{`{"model":"served","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"abc"}]},{"role":"user","content":"x"}]}`, "messages[1].content[0].signature"},
		{`{"model":"served","max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x"}]}]}`, "messages[0].content[0].tool_use_id"},
		{`{"model":"served","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"f","input":{}}]},{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t"}]}]}`, "results of tools come before texts"},
	} {
		r := post(t, url+"/v1/messages", tt.body)
		kind, message := claudeFault(t, r)
		if r.status != 400 || kind != "invalid_request_error" || !strings.Contains(message, tt.message) {
			t.Errorf("%s:\n%d %s %q, want %q", tt.body, r.status, kind, message, tt.message)
		}
	}
	if r := post(t, url+"/v1/messages", strings.Replace(helloClaude, "served", "claude", 1)); r.status != 404 {
		t.Errorf("another model: %d", r.status)
	} else if kind, _ := claudeFault(t, r); kind != "not_found_error" {
		t.Errorf("another model: %s", kind)
	}
}

func TestMessagesFaults(t *testing.T) {
	for _, tt := range []struct {
		err    error
		status int
		kind   string
	}{
		{engine.ErrQueueFull, 503, "overloaded_error"},
		{&engine.ContextError{Prompt: 5000, Limit: 4096}, 400, "invalid_request_error"},
		{&engine.DeviceError{Err: errors.New("x")}, 500, "api_error"},
	} {
		f := &fake{play: func(completion.Request) ([]moment, error) { return nil, tt.err }}
		url := testServer(t, f) + "/v1/messages"
		r := post(t, url, claudeWith(`"stream":true`))
		if kind, _ := claudeFault(t, r); r.status != tt.status || kind != tt.kind {
			t.Errorf("%v: %d %s", tt.err, r.status, kind)
		}
		f.play = always([]moment{say("so far")[0], {err: tt.err}})
		events := post(t, url, claudeWith(`"stream":true`)).events(t)
		last := events[len(events)-1]
		if kind, _ := claudeFault(t, reply{body: last.data}); last.name != "error" || kind != tt.kind {
			t.Errorf("%v: stream ends with %+v", tt.err, last)
		}
	}
}

func TestMessagesWhole(t *testing.T) {
	f := &fake{play: always(toolCallScript())}
	r := post(t, testServer(t, f)+"/v1/messages", helloClaude)
	var got map[string]any
	r.into(t, &got)
	ids := map[string]bool{}
	for _, b := range got["content"].([]any) {
		if id, ok := b.(map[string]any)["id"].(string); ok {
			if !strings.HasPrefix(id, "toolu_") || ids[id] {
				t.Errorf("id %q", id)
			}
			ids[id] = true
			delete(b.(map[string]any), "id")
		}
	}
	delete(got, "id")
	var want map[string]any
	json.Unmarshal([]byte(`{
		"type": "message", "role": "assistant", "model": "org/Served-Model", "stop_reason": "tool_use", "stop_sequence": null,
		"content": [
			{"type": "thinking", "thinking": "Hm.", "signature": ""}, {"type": "text", "text": "Wait"},
			{"type": "tool_use", "name": "weather", "input": {"city": "Paris"}}, {"type": "tool_use", "name": "time", "input": {}}],
		"usage": {"input_tokens": 3, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 2, "output_tokens": 9,
			"output_tokens_details": {"thinking_tokens": 3}, "cache_miss": {"reason": "edited", "position": 2}}
	}`), &want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestMessagesStopReasons(t *testing.T) {
	for _, tt := range []struct {
		reason   completion.Reason
		stop     string
		want     string
		sequence any
	}{
		{completion.ReasonStop, "", "end_turn", nil},
		{completion.ReasonStop, "END", "stop_sequence", "END"},
		{completion.ReasonLength, "", "max_tokens", nil},
	} {
		end := done(tt.reason, 1)
		end.event.Result.StopText = tt.stop
		f := &fake{play: always([]moment{say("x")[0], end})}
		var got map[string]any
		post(t, testServer(t, f)+"/v1/messages", helloClaude).into(t, &got)
		if got["stop_reason"] != tt.want || got["stop_sequence"] != tt.sequence {
			t.Errorf("%+v: %v %v", tt, got["stop_reason"], got["stop_sequence"])
		}
	}
}

// TestMessagesStream holds the events, their order, and what a client makes of
// them.
func TestMessagesStream(t *testing.T) {
	f := &fake{play: always(toolCallScript())}
	r := post(t, testServer(t, f)+"/v1/messages", claudeWith(`"stream":true`))
	var log []string
	for _, e := range r.events(t) {
		var got struct {
			Type    string
			Message *anthropicMessage
			Index   *int
			Block   struct{ Type, Name string } `json:"content_block"`
			Delta   struct {
				Type, Text, Thinking string
				PartialJSON          string `json:"partial_json"`
				StopReason           string `json:"stop_reason"`
			}
			Usage    *anthropicUsage
			Progress *progressBody
		}
		if err := json.Unmarshal([]byte(e.data), &got); err != nil {
			t.Fatal(err)
		}
		if got.Type != e.name {
			t.Errorf("name %q, type %q", e.name, got.Type)
		}
		line := got.Type
		if got.Index != nil {
			line += fmt.Sprint(" ", *got.Index)
		}
		line += strings.TrimRight(" "+got.Block.Type+" "+got.Block.Name+got.Delta.Type+" "+got.Delta.Text+got.Delta.Thinking+got.Delta.PartialJSON+got.Delta.StopReason, " ")
		if got.Message != nil {
			line += fmt.Sprint(" ", got.Message.Usage.InputTokens)
		}
		if got.Usage != nil {
			line += fmt.Sprint(" ", got.Usage.InputTokens, got.Usage.CacheRead, got.Usage.OutputTokens)
		}
		if got.Progress != nil {
			line += fmt.Sprint(" ", *got.Progress)
		}
		log = append(log, line)
	}
	want := []string{
		"message_start 5",
		"ping {prefill 3 5}",
		"content_block_start 0 thinking", "content_block_delta 0  thinking_delta Hm.", "content_block_stop 0",
		"content_block_start 1 text", "content_block_delta 1  text_delta Wait", "content_block_stop 1",
		"content_block_start 2 tool_use weather", `content_block_delta 2  input_json_delta {"city":`, `content_block_delta 2  input_json_delta "Paris"}`, "content_block_stop 2",
		"content_block_start 3 tool_use time", "content_block_delta 3  input_json_delta {}", "content_block_stop 3",
		"message_delta   tool_use 3 2 9",
		"message_stop",
	}
	if d := cmp.Diff(want, log); d != "" {
		t.Error(d)
	}
}

func TestCountTokens(t *testing.T) {
	f := &fake{}
	var asked completion.Request
	url := testServer(t, f, func(o *Options) {
		o.Encode = func(r completion.Request) ([]int32, error) { asked = r; return make([]int32, 42), nil }
	})
	r := post(t, url+"/v1/messages/count_tokens", `{"model":"served","system":"S","messages":[{"role":"user","content":"x"}],"tools":[{"name":"f","input_schema":{}}],"thinking":{"type":"enabled","budget_tokens":1024}}`)
	if r.status != 200 || strings.TrimSpace(r.body) != `{"input_tokens":42}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	if len(asked.Messages) != 2 || len(asked.Tools) != 1 || !asked.Thinking {
		t.Errorf("counted %+v", asked)
	}
	r = post(t, url+"/v1/messages/count_tokens", helloClaude)
	if _, message := claudeFault(t, r); !strings.Contains(message, "max_tokens is not a field") {
		t.Errorf("max_tokens: %s", r.body)
	}
}

func TestClaudeHeaders(t *testing.T) {
	url := testServer(t, &fake{play: always(say("x"))}, func(o *Options) { o.Key = testKey })
	r, _ := http.NewRequest("POST", url+"/v1/messages?beta=true", strings.NewReader(helloClaude))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", testKey)
	r.Header.Set("Anthropic-Version", "2023-06-01")
	r.Header.Set("Anthropic-Beta", "interleaved-thinking-2025-05-14")
	if got := do(t, r); got.status != 200 || got.header.Get("Request-Id") == "" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if r := post(t, url+"/v1/messages", helloClaude); r.status != 401 {
		t.Errorf("without a key: %d", r.status)
	} else if kind, _ := claudeFault(t, r); kind != "authentication_error" {
		t.Errorf("without a key: %s", kind)
	}
}
