package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
)

func thought(s string) *string { return &s }

// TestResponsesInput holds items against the messages that they become.
func TestResponsesInput(t *testing.T) {
	call := func(name, args string) chat.ToolCall {
		return chat.ToolCall{Name: name, Arguments: json.RawMessage(args)}
	}
	user := chat.Message{Role: "user", Content: chat.Text("Hi")}
	for _, tt := range []struct {
		name, fields string
		want         []chat.Message
	}{
		{"text", `"input":"Hi"`, []chat.Message{user}},
		{"text and instructions", `"input":"Hi","instructions":"Be terse."`, []chat.Message{{Role: "system", Content: chat.Text("Be terse.")}, user}},
		{"message without its type", `"input":[{"role":"user","content":"Hi"}]`, []chat.Message{user}},
		{"parts", `"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"H"},{"type":"input_text","text":"i"}]}]`,
			[]chat.Message{{Role: "user", Content: []chat.Part{{Text: "H"}, {Text: "i"}}}}},
		{"instructions and a developer's message", `"instructions":"A","input":[{"role":"developer","content":"B"},{"role":"user","content":"Hi"}]`,
			[]chat.Message{{Role: "system", Content: []chat.Part{{Text: "A"}, {Text: "\n\n"}, {Text: "B"}}}, user}},
		{"a turn that thinks, speaks and calls, given back", `"input":[
			{"role":"user","content":"Hi"},
			{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}],"status":"completed","encrypted_content":null},
			{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"Well","annotations":[],"logprobs":[]}]},
			{"type":"function_call","id":"fc_1","call_id":"c1","name":"f","arguments":"{\"a\": 1}","status":"completed"},
			{"type":"function_call","id":"fc_2","call_id":"c2","name":"g","arguments":"","status":"completed"},
			{"type":"function_call_output","call_id":"c2","output":"two"},
			{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"one"}]}]`,
			[]chat.Message{user,
				{Role: "assistant", Reasoning: thought("hm"), Content: chat.Text("Well"), ToolCalls: []chat.ToolCall{call("f", `{"a": 1}`), call("g", "{}")}},
				{Role: "tool", Content: chat.Text("one")}, {Role: "tool", Content: chat.Text("two")}}},
		{"calls one after the other", `"input":[
			{"role":"user","content":"Hi"},
			{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"},
			{"type":"function_call_output","call_id":"c1","output":"one"},
			{"type":"function_call","call_id":"c2","name":"g","arguments":"{}"},
			{"type":"function_call_output","call_id":"c2","output":"two"}]`,
			[]chat.Message{user,
				{Role: "assistant", ToolCalls: []chat.ToolCall{call("f", "{}")}}, {Role: "tool", Content: chat.Text("one")},
				{Role: "assistant", ToolCalls: []chat.ToolCall{call("g", "{}")}}, {Role: "tool", Content: chat.Text("two")}}},
		{"two messages of the assistant", `"input":[{"role":"user","content":"Hi"},{"role":"assistant","content":"A"},{"role":"assistant","content":"B"},{"role":"user","content":"Hi"}]`,
			[]chat.Message{user, {Role: "assistant", Content: chat.Text("A")}, {Role: "assistant", Content: chat.Text("B")}, user}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{play: always(say("ok"))}
			if r := post(t, testServer(t, f)+"/v1/responses", `{"model":"served",`+tt.fields+"}"); r.status != 200 {
				t.Fatalf("status %d: %s", r.status, r.body)
			}
			if d := cmp.Diff(tt.want, f.last(t).Messages); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestResponsesRequests(t *testing.T) {
	own := engine.Sampling{Temperature: 1, TopK: 20, TopP: 0.95}
	for _, tt := range []struct {
		name, fields string
		want         completion.Request
	}{
		{"defaults of OpenAI said", `"store":false,"background":false,"truncation":"disabled","text":{"format":{"type":"text"}},"parallel_tool_calls":true,"previous_response_id":null,"include":[]`, completion.Request{}},
		{"limit", `"max_output_tokens":9`, completion.Request{MaxTokens: 9}},
		{"effort", `"reasoning":{"effort":"low","summary":"auto"}`, completion.Request{Thinking: true, ThinkingBudget: 2048, Sampling: own}},
		{"earlier thoughts", `"reasoning":{"context":"all_turns"}`, completion.Request{PreserveThinking: true}},
		{"log-probabilities", `"include":["message.output_text.logprobs"],"top_logprobs":3`, completion.Request{LogProbs: 3}},
		{"log-probabilities without others", `"include":["message.output_text.logprobs"]`, completion.Request{LogProbs: 0}},
		{"tools", `"tools":[{"type":"function","name":"f","description":"d","parameters":{"type":"object","properties":{"b":{},"a":{}}},"strict":false}]`,
			completion.Request{Tools: []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"b":{},"a":{}}}}}`)}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{play: always(say("ok"))}
			if r := post(t, testServer(t, f)+"/v1/responses", `{"model":"served","input":"Hi",`+tt.fields+"}"); r.status != 200 {
				t.Fatalf("status %d: %s", r.status, r.body)
			}
			want := tt.want
			want.Messages = []chat.Message{{Role: "user", Content: chat.Text("Hi")}}
			if !strings.Contains(tt.fields, "output_text.logprobs") {
				want.LogProbs = engine.NoLogProbs
			}
			if d := cmp.Diff(want, f.last(t)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestResponsesRefuse(t *testing.T) {
	url := testServer(t, &fake{play: always(say("x"))}) + "/v1/responses"
	for _, tt := range []struct{ fields, code, param string }{
		{`"instructions":"x"`, "missing_required_parameter", "input"},
		{`"input":[]`, "invalid_value", "input"},
		{`"input":"x","messages":[]`, "unknown_parameter", "messages"},
		{`"input":"x","store":true`, "unsupported_value", "store"},
		{`"input":"x","previous_response_id":"resp_1"`, "unsupported_parameter", "previous_response_id"},
		{`"input":"x","text":{"format":{"type":"json_schema","name":"n"}}`, "missing_required_parameter", "text.format.schema"},
		{`"input":"x","tools":[{"type":"web_search"}]`, "unsupported_value", "tools[0].type"},
		{`"input":"x","tools":[{"type":"function","name":"f"}],"tool_choice":{"type":"function","name":"g"}`, "invalid_value", "tool_choice"},
		{`"input":"x","tools":[{"type":"function","name":"f"},{"type":"function","name":"f"}]`, "invalid_value", "tools[1].name"},
		{`"input":"x","reasoning":{"effort":"none"},"thinking_budget":5`, "invalid_value", "thinking_budget"},
		{`"input":"x","reasoning":{"effort":"high"},"chat_template_kwargs":{"enable_thinking":false}`, "invalid_value", "reasoning.effort"},
		{`"input":"x","reasoning_effort":"high"`, "unknown_parameter", "reasoning_effort"},
		{`"input":[{"role":"user","content":[{"type":"input_image","image_url":"x"}]}]`, "unsupported_value", "input[0].content[0].type"},
		{`"input":[{"type":"item_reference","id":"x"}]`, "unsupported_value", "input[0].type"},
		{`"input":[{"type":"function_call_output","call_id":"x","output":"y"}]`, "invalid_value", "input[0].call_id"},
		{`"input":[{"type":"function_call","call_id":"x","name":"f","arguments":"{"}]`, "invalid_value", "input[0].arguments"},
	} {
		r := post(t, url, `{"model":"served",`+tt.fields+"}")
		if got := r.fault(t); r.status != 400 || got.Code != tt.code || got.Param != tt.param {
			t.Errorf("%s: %d %+v, want %s %q", tt.fields, r.status, got, tt.code, tt.param)
		}
	}
}

// TestTemplateFaultsNameTheItem: the conversation's own names of messages are
// not the client's.
func TestTemplateFaultsNameTheItem(t *testing.T) {
	f := &fake{play: func(completion.Request) ([]moment, error) {
		return nil, &chat.Error{Path: "messages[2]", Reason: "System message must be at the beginning."}
	}}
	body := `{"model":"served","instructions":"x","input":[{"role":"user","content":"a"},{"role":"system","content":"b"}]}`
	if got := post(t, testServer(t, f)+"/v1/responses", body).fault(t); got.Param != "input[1]" || !strings.HasPrefix(got.Message, "input[1]: ") {
		t.Errorf("fault %+v", got)
	}
}

func TestResponsesWhole(t *testing.T) {
	f := &fake{play: always(toolCallScript())}
	r := post(t, testServer(t, f)+"/v1/responses", `{"model":"served","input":"Hi","instructions":"I","metadata":{"k":"v"},"temperature":0.5,"tools":[{"type":"function","name":"weather"}]}`)
	var got map[string]any
	r.into(t, &got)
	output, _ := json.Marshal(got["output"])
	for _, id := range []string{"id", "call_id"} {
		for _, item := range got["output"].([]any) {
			delete(item.(map[string]any), id)
		}
	}
	for _, key := range []string{"id", "created_at", "completed_at"} {
		if got[key] == nil || got[key] == "" {
			t.Errorf("no %s", key)
		}
		delete(got, key)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(`{
		"object": "response", "status": "completed", "model": "org/Served-Model", "background": false, "error": null, "incomplete_details": null,
		"instructions": "I", "max_output_tokens": null, "parallel_tool_calls": true, "previous_response_id": null,
		"reasoning": {"effort": null, "summary": null}, "service_tier": "default", "store": false, "temperature": 0.5, "top_p": 1, "top_logprobs": 0,
		"text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [{"type": "function", "name": "weather"}], "truncation": "disabled",
		"user": null, "metadata": {"k": "v"},
		"usage": {"input_tokens": 5, "input_tokens_details": {"cached_tokens": 2, "cache_write_tokens": 0}, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 14, "cache_miss": {"reason": "edited", "position": 2}},
		"output": [
			{"type": "reasoning", "status": "completed", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
			{"type": "message", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "Wait", "annotations": [], "logprobs": []}]},
			{"type": "function_call", "status": "completed", "name": "weather", "arguments": "{\"city\":\"Paris\"}"},
			{"type": "function_call", "status": "completed", "name": "time", "arguments": "{}"}]
	}`), &want); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	// What was given is taken back.
	again := `{"model":"served","input":[{"role":"user","content":"Hi"},` + strings.TrimSuffix(strings.TrimPrefix(string(output), "["), "]")
	var calls []struct {
		CallID string `json:"call_id"`
	}
	json.Unmarshal(output, &calls)
	for _, c := range calls[2:] {
		again += `,{"type":"function_call_output","call_id":"` + c.CallID + `","output":"x"}`
	}
	if r := post(t, testServer(t, f)+"/v1/responses", again+"]}"); r.status != 200 {
		t.Errorf("its own items are refused: %s", r.body)
	}
}

// TestResponsesStream holds the events and their order.
func TestResponsesStream(t *testing.T) {
	f := &fake{play: always(toolCallScript())}
	r := post(t, testServer(t, f)+"/v1/responses", `{"model":"served","input":"Hi","stream":true,"stream_options":{"include_progress":true}}`)
	var kinds []string
	text := map[string]string{}
	for i, e := range r.events(t) {
		var got responsesEvent
		if err := json.Unmarshal([]byte(e.data), &got); err != nil {
			t.Fatal(err)
		}
		if got.Type != e.name || got.SequenceNumber != i {
			t.Errorf("event %d: name %q, type %q, number %d", i, e.name, got.Type, got.SequenceNumber)
		}
		kinds = append(kinds, got.Type)
		text[got.Type] += got.Delta
		if got.Text != nil && *got.Text != text[strings.Replace(got.Type, ".done", ".delta", 1)] {
			t.Errorf("%s: %q is not what its deltas say", got.Type, *got.Text)
		}
		if got.Type == "response.completed" && (got.Response.Status != "completed" || len(got.Response.Output) != 4 || got.Response.Usage.TotalTokens != 14) {
			t.Errorf("end %s", e.data)
		}
	}
	want := strings.Fields(`response.created response.in_progress calla.progress
		response.output_item.added response.content_part.added response.reasoning_text.delta
		response.reasoning_text.done response.content_part.done response.output_item.done
		response.output_item.added response.content_part.added response.output_text.delta
		response.output_text.done response.content_part.done response.output_item.done
		response.output_item.added response.function_call_arguments.delta response.function_call_arguments.delta
		response.function_call_arguments.done response.output_item.done
		response.output_item.added response.function_call_arguments.delta
		response.function_call_arguments.done response.output_item.done response.completed`)
	if d := cmp.Diff(want, kinds); d != "" {
		t.Error(d)
	}
}

func TestResponsesIncomplete(t *testing.T) {
	f := &fake{play: always(append(say("cut")[:1], done(completion.ReasonLength, 1)))}
	url := testServer(t, f) + "/v1/responses"
	var got responseBody
	post(t, url, `{"model":"served","input":"Hi"}`).into(t, &got)
	if got.Status != "incomplete" || got.IncompleteDetails.Reason != "max_output_tokens" || got.CompletedAt != nil {
		t.Errorf("response %+v", got)
	}
	events := post(t, url, `{"model":"served","input":"Hi","stream":true}`).events(t)
	if last := events[len(events)-1]; last.name != "response.incomplete" {
		t.Errorf("last event %s", last.name)
	}
}

func TestResponsesStreamFails(t *testing.T) {
	f := &fake{play: always([]moment{say("so far")[0], {err: engine.ErrNotANumber}})}
	events := post(t, testServer(t, f)+"/v1/responses", `{"model":"served","input":"Hi","stream":true}`).events(t)
	fault, end := events[len(events)-2], events[len(events)-1]
	if fault.name != "error" || !strings.Contains(fault.data, `"code":"not_a_number"`) || strings.Contains(fault.data, `"error":{`) {
		t.Errorf("fault %+v", fault)
	}
	if end.name != "response.failed" || !strings.Contains(end.data, `"status":"failed"`) || !strings.Contains(end.data, `"error":{"code":"not_a_number"`) {
		t.Errorf("end %+v", end)
	}
}
