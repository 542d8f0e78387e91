package chat

import (
	"encoding/json"
	"fmt"
	"testing"
)

// wireRequest is a conversation as the test data write it: the fields that a
// template sees.
type wireRequest struct {
	Messages []wireMessage
	Tools    []json.RawMessage
	Options  struct {
		AddGenerationPrompt *bool `json:"add_generation_prompt"`
		EnableThinking      *bool `json:"enable_thinking"`
		PreserveThinking    bool  `json:"preserve_thinking"`
		Tools               []json.RawMessage
	}
}

type wireMessage struct {
	Role      string
	Content   json.RawMessage
	Reasoning *string    `json:"reasoning_content"`
	ToolCalls []wireCall `json:"tool_calls"`
}

type wireCall struct {
	Function *wireCall
	Name     string
	// Arguments is a string where a client of the API wrote it.
	Arguments json.RawMessage
}

func (c wireCall) call() ToolCall {
	if c.Function != nil {
		return c.Function.call()
	}
	return ToolCall{Name: c.Name, Arguments: c.Arguments}
}

func parseRequest(t testing.TB, raw []byte) wireRequest {
	t.Helper()
	var r wireRequest
	if err := json.Unmarshal(raw, &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r wireRequest) options(generate bool) Options {
	o := Options{
		Tools:               append(r.Tools, r.Options.Tools...),
		Thinking:            r.Options.EnableThinking == nil || *r.Options.EnableThinking,
		PreserveThinking:    r.Options.PreserveThinking,
		AddGenerationPrompt: generate,
	}
	if g := r.Options.AddGenerationPrompt; g != nil {
		o.AddGenerationPrompt = *g
	}
	return o
}

func (r wireRequest) messages() ([]Message, error) {
	var list []Message
	for i, w := range r.Messages {
		content, err := ParseContent(w.Content, fmt.Sprintf("messages[%d].content", i))
		if err != nil {
			return nil, err
		}
		m := Message{Role: w.Role, Content: content, Reasoning: w.Reasoning}
		for _, c := range w.ToolCalls {
			m.ToolCalls = append(m.ToolCalls, c.call())
		}
		list = append(list, m)
	}
	return list, nil
}

// render renders the request; generate is for requests that do not say
// whether they want a generation prompt.
func (r wireRequest) render(generate bool) (*Prompt, error) {
	messages, err := r.messages()
	if err != nil {
		return nil, err
	}
	return Render(messages, r.options(generate))
}
