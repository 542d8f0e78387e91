package server

import (
	"strings"
	"testing"

	"calla/core/completion"
)

// TestTruncatedCall ends an answer within a call's arguments: no API may show
// it as a call that can be run.
func TestTruncatedCall(t *testing.T) {
	script := toolCallScript()
	script = append(script[:5:5], done(completion.ReasonLength, 9)) // up to {"city":
	url := testServer(t, &fake{play: always(script)})
	var chat chatCompletion
	post(t, url+"/v1/chat/completions", hello).into(t, &chat)
	if c := chat.Choices[0]; c.FinishReason != "length" || len(c.Message.ToolCalls) != 0 || *c.Message.Content != "Wait" {
		t.Errorf("chat: %+v", c)
	}
	var response responseBody
	post(t, url+"/v1/responses", `{"model":"served","input":"x"}`).into(t, &response)
	if response.Status != "incomplete" || len(response.Output) != 2 {
		t.Errorf("response: %+v", response)
	}
	var message anthropicMessage
	post(t, url+"/v1/messages", helloClaude).into(t, &message)
	if *message.StopReason != "max_tokens" || len(message.Content) != 2 {
		t.Errorf("message: %+v", message)
	}
	// Streams have shown its beginning, and say that it was cut off.
	r := post(t, url+"/v1/chat/completions", helloWith(`"stream":true`))
	if c := collect(t, r.events(t), 0); len(c.Finish) != 1 || c.Finish[0] != "length" {
		t.Errorf("stream: %+v", c)
	}
	r = post(t, url+"/v1/responses", `{"model":"served","input":"x","stream":true}`)
	if !strings.Contains(r.body, `"type":"function_call","status":"incomplete"`) {
		t.Errorf("stream of a response: %s", r.body)
	}
	r = post(t, url+"/v1/messages", claudeWith(`"stream":true`))
	if !strings.Contains(r.body, `"stop_reason":"max_tokens"`) {
		t.Errorf("stream of a message: %s", r.body)
	}
}

// TestToolResults holds how results find their calls.
func TestToolResults(t *testing.T) {
	f := &fake{play: always(say("ok"))}
	url := testServer(t, f) + "/v1/chat/completions"
	calls := `{"role":"assistant","content":null,"tool_calls":[
		{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},
		{"id":"b","function":{"name":"g","arguments":""}}]}`
	send := func(after string) reply {
		return post(t, url, `{"model":"served","messages":[{"role":"user","content":"x"},`+calls+after+`]}`)
	}
	r := send(`,{"role":"tool","tool_call_id":"b","name":"g","content":"second"},{"role":"tool","tool_call_id":"a","content":[{"type":"text","text":"first"}]}`)
	if r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	var order []string
	for _, m := range f.last(t).Messages[2:] {
		order = append(order, m.Role+" "+plainText(m.Content))
	}
	if got := strings.Join(order, ", "); got != "tool first, tool second" {
		t.Errorf("results %s, want them in the order of the calls", got)
	}
	for _, tt := range []struct{ after, param string }{
		{"", "messages[1].tool_calls[0]"},
		{`,{"role":"tool","tool_call_id":"a","content":"x"}`, "messages[1].tool_calls[1]"},
		{`,{"role":"tool","tool_call_id":"a","content":"x"},{"role":"tool","tool_call_id":"a","content":"x"}`, "messages[3].tool_call_id"},
		{`,{"role":"tool","tool_call_id":"a","name":"g","content":"x"}`, "messages[2].name"},
		{`,{"role":"tool","tool_call_id":"c","content":"x"}`, "messages[2].tool_call_id"},
	} {
		if r := send(tt.after); r.status != 400 || r.fault(t).Param != tt.param {
			t.Errorf("%s: %d %s, want a fault of %s", tt.after, r.status, r.body, tt.param)
		}
	}
	twice := strings.Replace(calls, `"id":"b"`, `"id":"a"`, 1)
	r = post(t, url, `{"model":"served","messages":[{"role":"user","content":"x"},`+twice+`]}`)
	if r.status != 400 || r.fault(t).Param != "messages[1].tool_calls[1]" {
		t.Errorf("one id twice: %d %s", r.status, r.body)
	}
}

// TestRepeatedMessages sends an assistant's message back as OpenAI's SDK for
// Python has it after a stream: with what it read from content and arguments.
func TestRepeatedMessages(t *testing.T) {
	f := &fake{play: always(say("ok"))}
	url := testServer(t, f) + "/v1/chat/completions"
	for _, parsed := range []string{"null", `{"city":"Oslo"}`} {
		r := post(t, url, `{"model":"served","messages":[{"role":"user","content":"x"},
			{"role":"assistant","content":null,"refusal":null,"parsed":`+parsed+`,"tool_calls":[
				{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"city\":\"Oslo\"}","parsed_arguments":`+parsed+`}}]},
			{"role":"tool","tool_call_id":"a","content":"x"}]}`)
		if r.status != 200 {
			t.Errorf("parsed %s: %d %s", parsed, r.status, r.body)
			continue
		}
		if got := string(f.last(t).Messages[1].ToolCalls[0].Arguments); got != `{"city":"Oslo"}` {
			t.Errorf("arguments %s", got)
		}
	}
}

// TestContents holds every form of a message's content, for every role.
func TestContents(t *testing.T) {
	f := &fake{play: always(say("ok"))}
	url := testServer(t, f) + "/v1/chat/completions"
	for _, role := range []string{"system", "developer", "user", "assistant"} {
		for _, tt := range []struct{ content, want string }{
			{`,"content":"ab"`, "ab"},
			{`,"content":""`, ""},
			{`,"content":null`, ""},
			{``, ""},
			{`,"content":[]`, ""},
			{`,"content":[{"type":"text","text":"ab"}]`, "ab"},
			{`,"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "ab"},
		} {
			r := post(t, url, `{"model":"served","messages":[{"role":"`+role+`"`+tt.content+`},{"role":"user","content":"x"}]}`)
			if r.status != 200 {
				t.Errorf("%s%s: %d %s", role, tt.content, r.status, r.body)
				continue
			}
			m := f.last(t).Messages[0]
			if want := strings.Replace(role, "developer", "system", 1); m.Role != want || plainText(m.Content) != tt.want {
				t.Errorf("%s%s: %+v", role, tt.content, m)
			}
		}
	}
}

func TestSystemMessages(t *testing.T) {
	f := &fake{play: always(say("ok"))}
	url := testServer(t, f) + "/v1/chat/completions"
	post(t, url, `{"model":"served","messages":[{"role":"system","content":"a"},{"role":"developer","content":"b"},{"role":"user","content":"x"},{"role":"system","content":"late"}]}`)
	var got []string
	for _, m := range f.last(t).Messages {
		got = append(got, m.Role+" "+plainText(m.Content))
	}
	// What to make of the late one is for the template to say.
	if s := strings.Join(got, "; "); s != "system a\n\nb; user x; system late" {
		t.Errorf("messages %q", s)
	}
}
