package clients

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
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
	params.SetExtraFields(r.Extra)
	ask := c.whole
	if r.Stream {
		ask = c.stream
	}
	got, err := ask(ctx, params)
	if e := (*openai.Error)(nil); errors.As(err, &e) {
		return reply{Refusal: &refusal{Status: e.StatusCode, Code: e.Code, Param: e.Param}}, nil
	}
	return got, err
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

func (c goSDK) whole(ctx context.Context, p openai.ChatCompletionNewParams) (reply, error) {
	got, err := c.Chat.Completions.New(ctx, p)
	if err != nil {
		return reply{}, err
	}
	if len(got.Choices) != 1 {
		return reply{}, fmt.Errorf("%d choices, want 1", len(got.Choices))
	}
	return reply{
		Text: got.Choices[0].Message.Content, Finish: got.Choices[0].FinishReason,
		PromptTokens: int(got.Usage.PromptTokens), CompletionTokens: int(got.Usage.CompletionTokens),
	}, nil
}

func (c goSDK) stream(ctx context.Context, p openai.ChatCompletionNewParams) (reply, error) {
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	s := c.Chat.Completions.NewStreaming(ctx, p)
	defer s.Close()
	var whole openai.ChatCompletionAccumulator
	deltas := 0
	for s.Next() {
		chunk := s.Current()
		if !whole.AddChunk(chunk) {
			return reply{}, fmt.Errorf("the SDK does not take the chunk %s", chunk.RawJSON())
		}
		if len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			deltas++
		}
	}
	if err := s.Err(); err != nil {
		return reply{}, err
	}
	if len(whole.Choices) != 1 {
		return reply{}, fmt.Errorf("%d choices, want 1", len(whole.Choices))
	}
	return reply{
		Text: whole.Choices[0].Message.Content, Finish: whole.Choices[0].FinishReason, Deltas: deltas,
		PromptTokens: int(whole.Usage.PromptTokens), CompletionTokens: int(whole.Usage.CompletionTokens),
	}, nil
}
