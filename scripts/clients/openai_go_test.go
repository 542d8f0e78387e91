package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/respjson"
	"github.com/openai/openai-go/v3/shared"
)

// goSDK is OpenAI's SDK for Go.
type goSDK struct{ openai.Client }

func openGo(_ *testing.T, url string) client {
	return goSDK{openai.NewClient(
		option.WithBaseURL(url),
		option.WithAPIKey("none"), // the SDK insists on one
		option.WithMaxRetries(0),
	)}
}

func (c goSDK) models(ctx context.Context) ([]string, error) {
	page, err := c.Models.List(ctx)
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, m := range page.Data {
		ids = append(ids, m.ID)
	}
	return ids, nil
}

func (c goSDK) chat(ctx context.Context, r request) (reply, error) {
	params := openai.ChatCompletionNewParams{Model: r.Model}
	for _, m := range r.Messages {
		p, err := param(m)
		if err != nil {
			return reply{}, err
		}
		params.Messages = append(params.Messages, p)
	}
	if len(r.Tools) > 0 {
		tools, err := toolParams(r.Tools)
		if err != nil {
			return reply{}, err
		}
		params.Tools = tools
	}
	extra := map[string]any{}
	maps.Copy(extra, r.Extra)
	if r.Thinking {
		extra["chat_template_kwargs"] = map[string]any{"enable_thinking": true}
	}
	params.SetExtraFields(extra)
	got, err := c.converse(ctx, params, r)
	if e := (*openai.Error)(nil); errors.As(err, &e) {
		return reply{Refusal: &refusal{Status: e.StatusCode, Code: e.Code, Param: e.Param}}, nil
	}
	return got, err
}

// converse asks, and gives results to calls, until the model answers.
func (c goSDK) converse(ctx context.Context, p openai.ChatCompletionNewParams, r request) (reply, error) {
	ask := c.whole
	if r.Stream {
		ask = c.stream
	}
	var calls []call
	for {
		m, got, err := ask(ctx, p)
		if err != nil || len(m.ToolCalls) == 0 {
			got.Calls = calls
			return got, err
		}
		p.Messages = append(p.Messages, m.ToParam())
		for _, tc := range m.ToolCalls {
			one := call{Name: tc.Function.Name}
			if err := json.Unmarshal([]byte(tc.Function.Arguments), &one.Arguments); err != nil {
				return reply{}, fmt.Errorf("arguments %q: %w", tc.Function.Arguments, err)
			}
			calls = append(calls, one)
			p.Messages = append(p.Messages, openai.ToolMessage(r.Result, tc.ID))
		}
	}
}

func param(m message) (openai.ChatCompletionMessageParamUnion, error) {
	switch m.Role {
	case "system":
		return openai.SystemMessage(m.Content), nil
	case "user":
		return openai.UserMessage(m.Content), nil
	case "assistant":
		return openai.AssistantMessage(m.Content), nil
	}
	return openai.ChatCompletionMessageParamUnion{}, fmt.Errorf("role %q, want system, user or assistant", m.Role)
}

func toolParams(raw []json.RawMessage) (tools []openai.ChatCompletionToolUnionParam, err error) {
	for _, r := range raw {
		var t struct {
			Function shared.FunctionDefinitionParam
		}
		if err := json.Unmarshal(r, &t); err != nil {
			return nil, err
		}
		tools = append(tools, openai.ChatCompletionFunctionTool(t.Function))
	}
	return tools, nil
}

func (c goSDK) whole(ctx context.Context, p openai.ChatCompletionNewParams) (m openai.ChatCompletionMessage, r reply, err error) {
	got, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		return m, r, err
	}
	if len(got.Choices) != 1 {
		return m, r, fmt.Errorf("%d choices, want 1", len(got.Choices))
	}
	m = got.Choices[0].Message
	return m, reply{
		Text: m.Content, Reasoning: extraText(m.JSON.ExtraFields), Finish: got.Choices[0].FinishReason,
		PromptTokens: int(got.Usage.PromptTokens), CompletionTokens: int(got.Usage.CompletionTokens),
	}, nil
}

func (c goSDK) stream(ctx context.Context, p openai.ChatCompletionNewParams) (m openai.ChatCompletionMessage, r reply, err error) {
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Chat.Completions.NewStreaming(ctx, p)
	defer s.Close()
	var whole openai.ChatCompletionAccumulator
	for s.Next() {
		chunk := s.Current()
		if !whole.AddChunk(chunk) {
			return m, r, fmt.Errorf("the SDK does not take the chunk %s", chunk.RawJSON())
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		delta := chunk.Choices[0].Delta
		r.Reasoning += extraText(delta.JSON.ExtraFields)
		if delta.Content != "" {
			r.Deltas++
		}
	}
	if err := s.Err(); err != nil {
		return m, r, err
	}
	if len(whole.Choices) != 1 {
		return m, r, fmt.Errorf("%d choices, want 1", len(whole.Choices))
	}
	m = whole.Choices[0].Message
	r.Text, r.Finish = m.Content, whole.Choices[0].FinishReason
	r.PromptTokens, r.CompletionTokens = int(whole.Usage.PromptTokens), int(whole.Usage.CompletionTokens)
	return m, r, nil
}

// extraText returns reasoning_content, which the SDK does not know, of a
// message's or a delta's further fields.
func extraText(fields map[string]respjson.Field) (text string) {
	if f, ok := fields["reasoning_content"]; ok {
		json.Unmarshal([]byte(f.Raw()), &text)
	}
	return text
}
