package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/chat"
	"calla/core/completion"
	"calla/core/engine"
)

const hello = `{"model":"served","messages":[{"role":"user","content":"Hello"}]}`

// hello with more fields.
func helloWith(fields string) string {
	return strings.TrimSuffix(hello, "}") + "," + fields + "}"
}

func toolCallScript() []moment {
	return []moment{
		{event: completion.Event{Kind: completion.Progress, Progress: engine.Progress{Stage: engine.StagePrefill, Done: 3, Total: 5}}},
		{event: completion.Event{Kind: completion.Reasoning, Text: "Hm."}},
		{event: completion.Event{Kind: completion.Content, Text: "Wait"}},
		{event: completion.Event{Kind: completion.ToolCall, Index: 0, Name: "weather"}},
		{event: completion.Event{Kind: completion.Arguments, Index: 0, Text: `{"city":`}},
		{event: completion.Event{Kind: completion.Arguments, Index: 0, Text: `"Paris"}`}},
		{event: completion.Event{Kind: completion.ToolCall, Index: 1, Name: "time"}},
		{event: completion.Event{Kind: completion.Arguments, Index: 1, Text: `{}`}},
		{event: completion.Event{Kind: completion.Done, Result: &completion.Result{
			Reason: completion.ReasonToolCalls, PromptTokens: 5, CachedTokens: 2, CompletionTokens: 9, ReasoningTokens: 3,
			Miss: &engine.CacheMiss{Reason: "edited", Position: 2},
		}}},
	}
}

func TestChatWhole(t *testing.T) {
	f := &fake{play: always(say("Hi", " there <&>", " 漢字"))}
	r := post(t, testServer(t, f)+"/v1/chat/completions", hello)
	if r.status != 200 {
		t.Fatalf("status %d: %s", r.status, r.body)
	}
	var got map[string]any
	r.into(t, &got)
	if id, _ := got["id"].(string); !strings.HasPrefix(id, "chatcmpl-") {
		t.Errorf("id %q", id)
	}
	delete(got, "id")
	delete(got, "created")
	var want map[string]any
	json.Unmarshal([]byte(`{
		"object": "chat.completion", "model": "org/Served-Model",
		"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi there <&> 漢字", "refusal": null}, "logprobs": null, "finish_reason": "stop"}],
		"usage": {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8,
			"prompt_tokens_details": {"cached_tokens": 2}, "completion_tokens_details": {"reasoning_tokens": 0}}
	}`), &want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if !strings.Contains(r.body, "<&>") {
		t.Errorf("HTML was escaped: %s", r.body)
	}
	if d := cmp.Diff([]chat.Message{{Role: "user", Content: chat.Text("Hello")}}, f.last(t).Messages); d != "" {
		t.Error(d)
	}
}

func TestChatToolCallsWhole(t *testing.T) {
	f := &fake{play: always(toolCallScript())}
	r := post(t, testServer(t, f)+"/v1/chat/completions", hello)
	var got chatCompletion
	r.into(t, &got)
	c := got.Choices[0]
	if c.FinishReason != "tool_calls" || c.Message.ReasoningContent != "Hm." || *c.Message.Content != "Wait" {
		t.Errorf("choice %s", r.body)
	}
	if len(c.Message.ToolCalls) != 2 {
		t.Fatalf("%d calls: %s", len(c.Message.ToolCalls), r.body)
	}
	first, second := c.Message.ToolCalls[0], c.Message.ToolCalls[1]
	if first.Function.Name != "weather" || first.Function.Arguments != `{"city":"Paris"}` || second.Function.Arguments != "{}" {
		t.Errorf("calls %+v", c.Message.ToolCalls)
	}
	if first.ID == "" || first.ID == second.ID || first.Index != nil {
		t.Errorf("ids %q and %q, index %v", first.ID, second.ID, first.Index)
	}
	want := &openAIUsage{5, 9, 14, promptDetails{2}, usageReasoning{3}, &cacheMiss{"edited", 2}}
	if d := cmp.Diff(want, got.Usage); d != "" {
		t.Error(d)
	}
}

// TestChatStreamOptions holds every way to ask for usage against the answer.
func TestChatStreamOptions(t *testing.T) {
	for _, tt := range []struct {
		fields string
		usage  bool
	}{
		{`"stream":true`, false},
		{`"stream":true,"stream_options":null`, false},
		{`"stream":true,"stream_options":{}`, false},
		{`"stream":true,"stream_options":{"include_usage":null}`, false},
		{`"stream":true,"stream_options":{"include_usage":false}`, false},
		{`"stream":true,"stream_options":{"include_usage":true}`, true},
		{`"stream":true,"stream_options":{"include_usage":true,"include_obfuscation":false}`, true},
	} {
		t.Run(tt.fields, func(t *testing.T) {
			f := &fake{play: always(say("a", "b"))}
			r := post(t, testServer(t, f)+"/v1/chat/completions", helloWith(tt.fields))
			events := r.events(t)
			if last := events[len(events)-1]; last.data != "[DONE]" {
				t.Fatalf("last event %q", last.data)
			}
			var withUsage int
			for i, e := range events[:len(events)-1] {
				var c chatChunk
				if err := json.Unmarshal([]byte(e.data), &c); err != nil {
					t.Fatal(err)
				}
				if c.Usage == nil {
					continue
				}
				withUsage++
				if i != len(events)-2 || len(c.Choices) != 0 || !strings.Contains(e.data, `"choices":[]`) {
					t.Errorf("usage in event %d of %d: %s", i, len(events), e.data)
				}
				if c.Usage.PromptTokens != 5 || c.Usage.CompletionTokens != 2 || c.Usage.TotalTokens != 7 {
					t.Errorf("usage %+v", c.Usage)
				}
			}
			if want := map[bool]int{true: 1}[tt.usage]; withUsage != want {
				t.Errorf("%d events with usage, want %d", withUsage, want)
			}
		})
	}
}

// collected is what a client makes of a stream of chunks.
type collected struct {
	Role, Content, Reasoning string
	Calls                    []collectedCall
	Finish                   []string
	Progress                 []progressBody
}

type collectedCall struct{ ID, Type, Name, Arguments string }

func collect(t *testing.T, events []event, index int) collected {
	t.Helper()
	var all collected
	for _, e := range events {
		if e.data == "[DONE]" {
			continue
		}
		var c chatChunk
		if err := json.Unmarshal([]byte(e.data), &c); err != nil {
			t.Fatalf("event %q: %v", e.data, err)
		}
		if c.Progress != nil {
			all.Progress = append(all.Progress, *c.Progress)
		}
		for _, ch := range c.Choices {
			if ch.Index == index {
				all.add(t, ch)
			}
		}
	}
	return all
}

func (all *collected) add(t *testing.T, ch chatChunkChoice) {
	all.Role += ch.Delta.Role
	if ch.Delta.Content != nil {
		all.Content += *ch.Delta.Content
	}
	all.Reasoning += ch.Delta.ReasoningContent
	for _, call := range ch.Delta.ToolCalls {
		if *call.Index == len(all.Calls) {
			all.Calls = append(all.Calls, collectedCall{})
		}
		if *call.Index >= len(all.Calls) {
			t.Fatalf("call %d after %d calls", *call.Index, len(all.Calls))
		}
		c := &all.Calls[*call.Index]
		c.ID += call.ID
		c.Type += call.Type
		c.Name += call.Function.Name
		c.Arguments += call.Function.Arguments
	}
	if ch.FinishReason != nil {
		all.Finish = append(all.Finish, *ch.FinishReason)
	}
}

func TestChatStream(t *testing.T) {
	f := &fake{play: always(toolCallScript())}
	r := post(t, testServer(t, f)+"/v1/chat/completions", helloWith(`"stream":true,"stream_options":{"include_progress":true}`))
	got := collect(t, r.events(t), 0)
	if len(got.Calls) != 2 || got.Calls[0].ID == "" || got.Calls[0].ID == got.Calls[1].ID {
		t.Fatalf("calls %+v", got.Calls)
	}
	got.Calls[0].ID, got.Calls[1].ID = "", ""
	want := collected{
		Role: "assistant", Content: "Wait", Reasoning: "Hm.", Finish: []string{"tool_calls"},
		Calls:    []collectedCall{{"", "function", "weather", `{"city":"Paris"}`}, {"", "function", "time", "{}"}},
		Progress: []progressBody{{"prefill", 3, 5}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestChatStreamWithoutProgress(t *testing.T) {
	f := &fake{play: always(toolCallScript())}
	r := post(t, testServer(t, f)+"/v1/chat/completions", helloWith(`"stream":true`))
	if strings.Contains(r.body, "progress") {
		t.Errorf("progress that nobody asked for: %s", r.body)
	}
}

func TestChatChoices(t *testing.T) {
	f := &fake{}
	f.play = func(r completion.Request) ([]moment, error) {
		return say("seed ", fmt.Sprint(*r.Sampling.Seed)), nil
	}
	url := testServer(t, f) + "/v1/chat/completions"
	var got chatCompletion
	post(t, url, helloWith(`"n":3,"seed":-1`)).into(t, &got)
	for i, want := range []string{"seed 18446744073709551615", "seed 0", "seed 1"} {
		if c := got.Choices[i]; c.Index != i || *c.Message.Content != want {
			t.Errorf("choice %d: %d %q, want %q", i, c.Index, *c.Message.Content, want)
		}
	}
	if u := got.Usage; u.PromptTokens != 5 || u.CompletionTokens != 6 || u.PromptDetails.CachedTokens != 2 {
		t.Errorf("usage %+v: the prompt counts once, completions each", u)
	}
	events := post(t, url, helloWith(`"n":2,"seed":7,"stream":true`)).events(t)
	for i, want := range []string{"seed 7", "seed 8"} {
		c := collect(t, events, i)
		if c.Content != want || c.Role != "assistant" || len(c.Finish) != 1 {
			t.Errorf("choice %d: %+v, want %q", i, c, want)
		}
	}
}

// TestChatRequests holds what is asked of the layers below.
func TestChatRequests(t *testing.T) {
	seed := func(n uint64) *uint64 { return &n }
	own := engine.Sampling{Temperature: 1, TopK: 20, TopP: 0.95}
	for _, tt := range []struct {
		name, fields string
		want         completion.Request
	}{
		{"nothing said", `"n":null`, completion.Request{}},
		{"all defaults of OpenAI said", `"store":false,"service_tier":"auto","modalities":["text"],"parallel_tool_calls":true,"response_format":{"type":"text"},"verbosity":"medium","stream":false,"n":1,"logprobs":false,"audio":null,"functions":null,"prediction":null`, completion.Request{}},
		{"identities", `"user":"u","metadata":{"a":"b"},"safety_identifier":"x","prompt_cache_key":"k"`, completion.Request{CacheKey: "k"}},
		{"both limits", `"max_tokens":7,"max_completion_tokens":5`, completion.Request{MaxTokens: 5}},
		{"old limit", `"max_tokens":7,"max_completion_tokens":null`, completion.Request{MaxTokens: 7}},
		{"new limit", `"max_completion_tokens":7`, completion.Request{MaxTokens: 7}},
		{"one stop", `"stop":"END\n"`, completion.Request{Stop: []string{"END\n"}}},
		{"four stops", `"stop":["a","b","c","d"]`, completion.Request{Stop: []string{"a", "b", "c", "d"}}},
		{"no stop", `"stop":null`, completion.Request{}},
		{"empty stops", `"stop":[]`, completion.Request{Stop: []string{}}},
		{"sampling", `"temperature":0.5,"top_p":0.9,"top_k":5,"min_p":0.1,"presence_penalty":1,"frequency_penalty":-1,"repetition_penalty":1.1,"seed":3,"logit_bias":{"17":-100}`,
			completion.Request{Sampling: engine.Sampling{Temperature: 0.5, TopP: 0.9, TopK: 5, MinP: 0.1, PresencePenalty: 1, FrequencyPenalty: -1, RepetitionPenalty: 1.1, Seed: seed(3), LogitBias: map[int32]float64{17: -100}}}},
		{"top_p of nothing is the likeliest token", `"top_p":0,"temperature":1`, completion.Request{Sampling: engine.Sampling{Temperature: 1, TopP: 1, TopK: 1}}},
		{"top_k off", `"top_k":-1`, completion.Request{}},
		{"thinking", `"chat_template_kwargs":{"enable_thinking":true}`, completion.Request{Thinking: true, Sampling: own}},
		{"thinking off", `"chat_template_kwargs":{"enable_thinking":false}`, completion.Request{}},
		{"thoughts kept", `"chat_template_kwargs":{"preserve_thinking":true}`, completion.Request{PreserveThinking: true}},
		{"thinking with a seed", `"reasoning_effort":"low","seed":1`, completion.Request{Thinking: true, ThinkingBudget: 2048, Sampling: engine.Sampling{Temperature: 1, TopK: 20, TopP: 0.95, Seed: seed(1)}}},
		{"thinking, greedily", `"reasoning_effort":"high","temperature":0`, completion.Request{Thinking: true, ThinkingBudget: 24576}},
		{"thinking with another top_p", `"reasoning_effort":"max","top_p":0.5`, completion.Request{Thinking: true, Sampling: engine.Sampling{Temperature: 1, TopP: 0.5}}},
		{"effort none", `"reasoning_effort":"none"`, completion.Request{}},
		{"budget", `"thinking_budget":100`, completion.Request{Thinking: true, ThinkingBudget: 100, Sampling: own}},
		{"no budget", `"thinking_budget":0`, completion.Request{}},
		{"budget over the effort's", `"reasoning_effort":"low","thinking_budget":100`, completion.Request{Thinking: true, ThinkingBudget: 100, Sampling: own}},
		{"logprobs", `"logprobs":true`, completion.Request{LogProbs: 0}},
		{"top logprobs", `"logprobs":true,"top_logprobs":20`, completion.Request{LogProbs: 20}},
		{"tools", `"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"tool_choice":"auto"`,
			completion.Request{Tools: []json.RawMessage{json.RawMessage(`{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}`)}}},
		{"tools that must not be called", `"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"none"`, completion.Request{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{play: always(say("ok"))}
			if r := post(t, testServer(t, f)+"/v1/chat/completions", helloWith(tt.fields)); r.status != 200 {
				t.Fatalf("status %d: %s", r.status, r.body)
			}
			want := tt.want
			want.Messages = []chat.Message{{Role: "user", Content: chat.Text("Hello")}}
			if !strings.Contains(tt.fields, `"logprobs":true`) {
				want.LogProbs = engine.NoLogProbs
			}
			if d := cmp.Diff(want, f.last(t)); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestChatFaults holds faults below against what clients see, before and after
// the headers of a stream.
func TestChatFaults(t *testing.T) {
	for _, tt := range []struct {
		name    string
		err     error
		status  int
		code    string
		message string
	}{
		{"full queue", fmt.Errorf("wrapped: %w", engine.ErrQueueFull), 503, "queue_full", "queue is full"},
		{"stopped", engine.ErrStopped, 503, "stopped", "stopped"},
		{"prompt too long", &engine.ContextError{Prompt: 5000, Limit: 4096}, 400, "context_length_exceeded", "4096 tokens; the prompt has 5000"},
		{"completion too long", &engine.ContextError{Prompt: 4000, MaxTokens: 97, Limit: 4096}, 400, "context_length_exceeded", "4096 tokens; the prompt has 4000 and the completion was to have up to 97"},
		{"device", &engine.DeviceError{Err: errors.New("lost")}, 500, "device_error", "device"},
		{"machine out of memory", engine.ErrNoMemory, 503, "out_of_memory", "out of memory"},
		{"device that hangs", &engine.DeviceError{Err: engine.ErrStuck}, 503, "device_stuck", "does not answer"},
		{"not a number", engine.ErrNotANumber, 500, "not_a_number", "number"},
		{"template", &chat.Error{Path: "messages[0]", Reason: "System message must be at the beginning."}, 400, "invalid_value", "messages[0]: System message must be at the beginning."},
		{"anything else", errors.New("secret of a person"), 500, "internal_error", "failed within"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{play: func(completion.Request) ([]moment, error) { return nil, tt.err }}
			url := testServer(t, f) + "/v1/chat/completions"
			for _, body := range []string{hello, helloWith(`"stream":true`)} {
				r := post(t, url, body)
				if got := r.fault(t); r.status != tt.status || got.Code != tt.code || !strings.Contains(got.Message, tt.message) {
					t.Errorf("at admission: %d %+v, want %d %s with %q", r.status, got, tt.status, tt.code, tt.message)
				}
				if wait := r.header.Get("Retry-After"); (wait != "") != (tt.code == "queue_full" || tt.code == "out_of_memory") {
					t.Errorf("Retry-After %q", wait)
				}
			}
			f.play = always([]moment{{event: completion.Event{Kind: completion.Content, Text: "so far"}}, {err: tt.err}})
			if r := post(t, url, hello); r.status != tt.status || r.fault(t).Code != tt.code {
				t.Errorf("whole answer that failed half-way: %d %s", r.status, r.body)
			}
			r := post(t, url, helloWith(`"stream":true`))
			events := r.events(t)
			last := reply{body: events[len(events)-1].data}.fault(t)
			if r.status != 200 || last.Code != tt.code || strings.Contains(r.body, "[DONE]") || !strings.Contains(r.body, "so far") {
				t.Errorf("stream that failed half-way: %d %s", r.status, r.body)
			}
			if strings.Contains(r.body, "secret") {
				t.Error("an unknown error was repeated")
			}
		})
	}
}

func TestAdmissionIsAllOrNothing(t *testing.T) {
	f := &fake{}
	var n int
	f.play = func(completion.Request) ([]moment, error) {
		if n++; n == 3 {
			return nil, engine.ErrQueueFull
		}
		return say("x"), nil
	}
	r := post(t, testServer(t, f)+"/v1/chat/completions", helloWith(`"n":3`))
	if r.status != 503 {
		t.Fatalf("status %d", r.status)
	}
	for i, s := range f.started() {
		select {
		case <-s.closed:
		default:
			t.Errorf("choice %d was left open", i)
		}
	}
}
