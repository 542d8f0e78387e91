package completion

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"calla/bundle/demo"
	"calla/core/chat"
	"calla/core/checkpoint"
	"calla/core/cpu"
	"calla/core/engine"
	"calla/core/model"
	"calla/core/schema"
)

// demoService is a service with the demo model.
func demoService(t *testing.T) *stage {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the demo model")
	}
	c, err := checkpoint.Open(demo.Source(), checkpoint.Options{Exact: []checkpoint.Config{demo.Config}})
	if err != nil {
		t.Fatal(err)
	}
	device := cpu.New(cpu.Options{})
	t.Cleanup(func() {
		device.Close()
		c.Close()
	})
	s := &stage{tok: demoTokenizer(t)}
	o := engine.Options{MaxSeq: 1024, PrefillChunk: 512, Queue: 1, CacheEntries: 1}
	if o.Vocab, o.Turn, o.StopTokens, err = EngineOptions(s.tok, c.StopTokens()); err != nil {
		t.Fatal(err)
	}
	load := func(ctx context.Context, progress func(done, total int64)) (*model.Model, func() error, error) {
		m, err := model.Load(ctx, device, c, 0, progress)
		if err != nil {
			return nil, nil, err
		}
		return m, m.Close, nil
	}
	if s.engine, err = engine.New(load, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		s.engine.Close(ctx)
	})
	if s.Service, err = New(s.engine, s.tok); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestDemoModelExtracts(t *testing.T) {
	s := demoService(t)
	const maria = "Extract name, age and city as JSON.\nMaria is 34 years old, lives in Lisbon and works as a pilot. Maria likes chess and has a owl."
	for _, tt := range []struct {
		name, prompt, schema string
		thinking             bool
		want                 string // where the model knows what is asked for
	}{
		{"what it was taught", maria, `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"},"city":{"type":"string"}},"required":["name","age","city"],"additionalProperties":false}`,
			false, `{"name": "Maria", "age": 34, "city": "Lisbon"}`},
		{"any object", maria, string(schema.AnyObject), false, `{"name": "Maria", "age": 34, "city": "Lisbon"}`},
		{"a thought first", maria, `{"type":"object","properties":{"name":{"type":"string","maxLength":20},"age":{"type":"integer","maximum":150}},"required":["name","age"],"additionalProperties":false}`, true, ""},
		{"other members", maria, `{"type":"object","properties":{"person":{"type":"object","properties":{"name":{"enum":["Maria","Anna"]},"pilot":{"type":"boolean"}},"required":["name","pilot"],"additionalProperties":false},"tags":{"type":"array","items":{"type":"string","maxLength":12},"maxItems":3}},"required":["person","tags"],"additionalProperties":false}`, false, ""},
		{"no JSON asked for", "What is the capital of France?", `{"type":"object","properties":{"capital":{"type":"string","maxLength":20}},"required":["capital"],"additionalProperties":false}`, false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := complete(t, s, Request{Messages: user(tt.prompt), Answer: json.RawMessage(tt.schema), Thinking: tt.thinking, ThinkingBudget: 60, MaxTokens: 300})
			t.Logf("%q %s", got.reasoning, got.content)
			if got.result.Reason != ReasonStop {
				t.Errorf("reason %s", got.result.Reason)
			}
			fits(t, tt.schema, got.content)
			if tt.want != "" && got.content != tt.want {
				t.Errorf("content %s, want %s", got.content, tt.want)
			}
		})
	}
}

func TestDemoModelMustCall(t *testing.T) {
	s := demoService(t)
	tool := func(name, parameters string) json.RawMessage {
		return json.RawMessage(`{"type": "function", "function": {"name": "` + name + `", "description": "Get the current weather in a city.", "parameters": ` + parameters + `}}`)
	}
	const parameters = `{"type": "object", "properties": {"city": {"type": "string", "description": "The city."}}, "required": ["city"]}`
	const timer = `{"type": "object", "properties": {"minutes": {"type": "integer", "minimum": 1, "maximum": 600}}, "required": ["minutes"]}`
	tools := []json.RawMessage{tool("get_weather", parameters), tool("set_timer", timer)}
	for _, tt := range []struct {
		name string
		r    Request
		call string
		fits string
		want string
	}{
		{"what it would do anyway", Request{MustCall: true}, "get_weather", parameters, `{"city": "Oslo"}`},
		{"another tool", Request{MustCall: true, Callee: "set_timer"}, "set_timer", timer, ""},
		{"strict", Request{Strict: []bool{true, true}}, "get_weather", parameters, `{"city": "Oslo"}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Messages, tt.r.Tools, tt.r.MaxTokens = []chat.Message{{Role: "user", Content: chat.Text("What is the weather in Oslo?")}}, tools, 300
			got := complete(t, s, tt.r)
			if strings.Join(got.names, " ") != tt.call || got.result.Reason != ReasonToolCalls {
				t.Fatalf("calls %q, content %q, reason %s", got.names, got.content, got.result.Reason)
			}
			fits(t, tt.fits, got.arguments)
			if tt.want != "" && got.arguments != tt.want {
				t.Errorf("arguments %s, want %s", got.arguments, tt.want)
			}
		})
	}
}
