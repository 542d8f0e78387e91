package server

import (
	"encoding/json"
	"time"

	"calla/core/completion"
)

// responseBody is a response of OpenAI's. What a request may not say is given
// with the one value that it has.
type responseBody struct {
	ID                 string             `json:"id"`
	Object             string             `json:"object"`
	CreatedAt          int64              `json:"created_at"`
	CompletedAt        *int64             `json:"completed_at"`
	Status             string             `json:"status"`
	Background         bool               `json:"background"`
	Error              *responseError     `json:"error"`
	IncompleteDetails  *incompleteDetails `json:"incomplete_details"`
	Instructions       *string            `json:"instructions"`
	MaxOutputTokens    *int               `json:"max_output_tokens"`
	Model              string             `json:"model"`
	Output             []any              `json:"output"`
	ParallelToolCalls  bool               `json:"parallel_tool_calls"`
	PreviousResponseID *string            `json:"previous_response_id"`
	Reasoning          responseReasoning  `json:"reasoning"`
	ServiceTier        string             `json:"service_tier"`
	Store              bool               `json:"store"`
	Temperature        float64            `json:"temperature"`
	Text               responseText       `json:"text"`
	ToolChoice         toolChoice         `json:"tool_choice"`
	Tools              []responsesTool    `json:"tools"`
	TopLogProbs        int                `json:"top_logprobs"`
	TopP               float64            `json:"top_p"`
	Truncation         string             `json:"truncation"`
	Usage              *responseUsage     `json:"usage"`
	User               *string            `json:"user"`
	Metadata           json.RawMessage    `json:"metadata"`
	Warning            string             `json:"warning,omitempty"` // beside OpenAI's fields
}

type responseError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type incompleteDetails struct {
	Reason string `json:"reason"`
}

type responseReasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

type responseText struct {
	Format answerFormat `json:"format"`
}

type responseUsage struct {
	InputTokens   int            `json:"input_tokens"`
	InputDetails  inputDetails   `json:"input_tokens_details"`
	OutputTokens  int            `json:"output_tokens"`
	OutputDetails usageReasoning `json:"output_tokens_details"`
	TotalTokens   int            `json:"total_tokens"`
	CacheMiss     *cacheMiss     `json:"cache_miss,omitempty"` // beside OpenAI's fields
}

type inputDetails struct {
	CachedTokens     int `json:"cached_tokens"`
	CacheWriteTokens int `json:"cache_write_tokens"`
}

func responseUsageOf(r *completion.Result) *responseUsage {
	return &responseUsage{
		InputTokens: r.PromptTokens, InputDetails: inputDetails{CachedTokens: r.CachedTokens},
		OutputTokens: r.CompletionTokens, OutputDetails: usageReasoning{r.ReasoningTokens},
		TotalTokens: r.PromptTokens + r.CompletionTokens, CacheMiss: missOf(r),
	}
}

// The items of a response's output.
type (
	reasoningItem struct {
		ID      string     `json:"id"`
		Type    string     `json:"type"`
		Status  string     `json:"status"`
		Summary []struct{} `json:"summary"`
		Content []textPart `json:"content"`
	}
	messageItem struct {
		ID      string       `json:"id"`
		Type    string       `json:"type"`
		Status  string       `json:"status"`
		Role    string       `json:"role"`
		Content []outputPart `json:"content"`
	}
	functionCallItem struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		Status    string `json:"status"`
		CallID    string `json:"call_id"`
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	}
)

type textPart struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

type outputPart struct {
	textPart
	Annotations []struct{}     `json:"annotations"`
	LogProbs    []tokenLogProb `json:"logprobs"`
}

// The states of a response and of its items.
const (
	inProgress = "in_progress"
	completed  = "completed"
	incomplete = "incomplete"
	failed     = "failed"
)

// responseItem returns a block as an item, without its content while it is in
// progress.
func responseItem(b *block, status string) any {
	full := status != inProgress
	switch b.kind {
	case completion.Reasoning:
		item := reasoningItem{ID: itemID(b), Type: "reasoning", Status: status, Summary: []struct{}{}, Content: []textPart{}}
		if full {
			item.Content = append(item.Content, reasoningPart(b, true))
		}
		return item
	case completion.Content:
		item := messageItem{ID: itemID(b), Type: "message", Status: status, Role: "assistant", Content: []outputPart{}}
		if full {
			item.Content = append(item.Content, contentPart(b, true))
		}
		return item
	}
	item := functionCallItem{ID: itemID(b), Type: "function_call", Status: status, CallID: callID(b), Name: b.name}
	if full {
		item.Arguments = b.text.String()
	}
	return item
}

func itemID(b *block) string {
	switch b.kind {
	case completion.Reasoning:
		return "rs_" + b.id
	case completion.Content:
		return "msg_" + b.id
	}
	return "fc_" + b.id
}

// reasoningPart is the one part of a thought; empty where it begins.
func reasoningPart(b *block, full bool) textPart {
	p := textPart{Type: "reasoning_text"}
	if full {
		p.Text = b.text.String()
	}
	return p
}

// contentPart is the one part of a message; empty where it begins.
func contentPart(b *block, full bool) outputPart {
	p := outputPart{textPart: textPart{Type: "output_text"}, Annotations: []struct{}{}, LogProbs: []tokenLogProb{}}
	if full {
		p.Text, p.LogProbs = b.text.String(), logProbsOf(b.tokens)
	}
	return p
}

// newResponse returns a response as it begins.
func newResponse(model string, c *responsesRequest, r completion.Request) *responseBody {
	b := &responseBody{
		ID: newID("resp_"), Object: "response", CreatedAt: time.Now().Unix(), Status: inProgress,
		Instructions: c.Instructions, MaxOutputTokens: c.MaxTokens, Model: model, Output: []any{},
		ParallelToolCalls: !c.single(), Reasoning: responseReasoning{Effort: c.Reasoning.Effort}, ServiceTier: "default",
		Temperature: r.Sampling.Temperature, TopP: r.Sampling.TopP, Text: responseText{c.Text.Format},
		ToolChoice: c.ToolChoice, Tools: c.Tools, TopLogProbs: c.TopLogProbs, Truncation: "disabled",
		User: c.User, Metadata: c.Metadata,
	}
	if b.Tools == nil {
		b.Tools = []responsesTool{}
	}
	if b.TopP == 0 {
		b.TopP = 1 // off
	}
	if b.Metadata == nil {
		b.Metadata = json.RawMessage("{}")
	}
	return b
}

// repeatNothing takes out what people wrote: an error ends up in logs of other
// people's apps.
func (b *responseBody) repeatNothing() {
	b.Instructions, b.User, b.Metadata, b.Tools = nil, nil, json.RawMessage("{}"), []responsesTool{}
}

// finish returns the response with its answer.
func (b *responseBody) finish(a *answer) *responseBody {
	done := *b
	now := time.Now().Unix()
	done.CompletedAt, done.Status = &now, completed
	if a.result.Reason == completion.ReasonLength {
		done.CompletedAt, done.Status = nil, incomplete
		done.IncompleteDetails = &incompleteDetails{"max_output_tokens"}
	}
	done.Output = []any{}
	for i, block := range a.whole() {
		status := completed
		if i == len(a.blocks)-1 {
			status = done.Status
		}
		done.Output = append(done.Output, responseItem(block, status))
	}
	done.Usage, done.Warning = responseUsageOf(a.result), a.result.Warning
	return &done
}
