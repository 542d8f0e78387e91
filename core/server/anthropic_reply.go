package server

import (
	"encoding/json"

	"calla/core/completion"
	"calla/core/engine"
)

// messagesVoice answers in the words of Anthropic's messages.
type messagesVoice struct {
	id, model string
	prompt    int // tokens
	turns     blockTurns
}

func newMessagesVoice(model string) *messagesVoice {
	return &messagesVoice{id: newID("msg_"), model: model}
}

type anthropicMessage struct {
	ID           string         `json:"id"`
	Type         string         `json:"type"`
	Role         string         `json:"role"`
	Model        string         `json:"model"`
	Content      []any          `json:"content"`
	StopReason   *string        `json:"stop_reason"`
	StopSequence *string        `json:"stop_sequence"`
	Usage        anthropicUsage `json:"usage"`
	Warning      string         `json:"warning,omitempty"` // beside Anthropic's fields
}

// anthropicUsage counts the tokens of the prompt that came from the cache
// apart from the others.
type anthropicUsage struct {
	InputTokens   int             `json:"input_tokens"`
	CacheCreation int             `json:"cache_creation_input_tokens"`
	CacheRead     int             `json:"cache_read_input_tokens"`
	OutputTokens  int             `json:"output_tokens"`
	OutputDetails *thinkingTokens `json:"output_tokens_details,omitempty"`
	CacheMiss     *cacheMiss      `json:"cache_miss,omitempty"` // beside Anthropic's fields
}

type thinkingTokens struct {
	ThinkingTokens int `json:"thinking_tokens"`
}

func anthropicUsageOf(r *completion.Result) anthropicUsage {
	return anthropicUsage{
		InputTokens: r.PromptTokens - r.CachedTokens, CacheRead: r.CachedTokens,
		OutputTokens: r.CompletionTokens, OutputDetails: &thinkingTokens{r.ReasoningTokens}, CacheMiss: missOf(r),
	}
}

// The blocks of a message.
type (
	textBlockBody struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingBlockBody struct {
		Type      string `json:"type"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"` // thoughts are not signed here
	}
	toolUseBlockBody struct {
		Type  string          `json:"type"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
)

// anthropicBody returns a block, without its content where it only begins.
func anthropicBody(b *block, full bool) any {
	content := ""
	if full {
		content = b.text.String()
	}
	switch b.kind {
	case completion.Reasoning:
		return thinkingBlockBody{Type: "thinking", Thinking: content}
	case completion.Content:
		return textBlockBody{"text", content}
	}
	if content == "" {
		content = "{}"
	}
	return toolUseBlockBody{"tool_use", "toolu_" + b.id, b.name, json.RawMessage(content)}
}

// stopReason returns why the message ended, and the text that ended it.
func stopReason(r *completion.Result) (reason string, sequence *string) {
	switch {
	case r.StopText != "":
		return "stop_sequence", &r.StopText
	case r.Reason == completion.ReasonLength:
		return "max_tokens", nil
	case r.Reason == completion.ReasonToolCalls:
		return "tool_use", nil
	}
	return "end_turn", nil
}

func (v *messagesVoice) begin(prompts [][]int32) { v.prompt = len(prompts[0]) }

func (v *messagesVoice) message() *anthropicMessage {
	return &anthropicMessage{ID: v.id, Type: "message", Role: "assistant", Model: v.model, Content: []any{}}
}

func (v *messagesVoice) whole(answers []*answer) any {
	a, m := answers[0], v.message()
	for _, b := range a.whole() {
		m.Content = append(m.Content, anthropicBody(b, true))
	}
	reason, sequence := stopReason(a.result)
	m.StopReason, m.StopSequence = &reason, sequence
	m.Usage, m.Warning = anthropicUsageOf(a.result), a.result.Warning
	return m
}

// messagesEvent is any event of the stream; each type has some of the fields.
type messagesEvent struct {
	Type         string            `json:"type"`
	Message      *anthropicMessage `json:"message,omitempty"`
	Index        *int              `json:"index,omitempty"`
	ContentBlock any               `json:"content_block,omitempty"`
	Delta        any               `json:"delta,omitempty"`
	Usage        *anthropicUsage   `json:"usage,omitempty"`
	Progress     *progressBody     `json:"progress,omitempty"` // of a ping, beside Anthropic's fields
}

// The deltas of a stream.
type (
	textDelta struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	thinkingDelta struct {
		Type     string `json:"type"`
		Thinking string `json:"thinking"`
	}
	inputDelta struct {
		Type        string `json:"type"`
		PartialJSON string `json:"partial_json"`
	}
	messageDelta struct {
		StopReason   string  `json:"stop_reason"`
		StopSequence *string `json:"stop_sequence"`
		Warning      string  `json:"warning,omitempty"`
	}
)

func (v *messagesVoice) send(out *eventWriter, e messagesEvent) { out.event(e.Type, e) }

// open tells the length of the prompt; what of it came from the cache is known
// at the end.
func (v *messagesVoice) open(out *eventWriter) {
	m := v.message()
	m.Usage.InputTokens = v.prompt
	v.send(out, messagesEvent{Type: "message_start", Message: m})
}

func (v *messagesVoice) event(out *eventWriter, _ int, e completion.Event, a *answer) {
	v.turns.follow(a, func(i int, b *block) {
		v.send(out, messagesEvent{Type: "content_block_start", Index: &i, ContentBlock: anthropicBody(b, false)})
	}, func(i int, _ *block) {
		v.send(out, messagesEvent{Type: "content_block_stop", Index: &i})
	})
	var delta any
	switch e.Kind {
	case completion.Reasoning:
		delta = thinkingDelta{"thinking_delta", e.Text}
	case completion.Content:
		delta = textDelta{"text_delta", e.Text}
	case completion.Arguments:
		delta = inputDelta{"input_json_delta", e.Text}
	default:
		return
	}
	i := len(a.blocks) - 1
	v.send(out, messagesEvent{Type: "content_block_delta", Index: &i, Delta: delta})
}

func (v *messagesVoice) progress(out *eventWriter, p engine.Progress) {
	v.send(out, messagesEvent{Type: "ping", Progress: &progressBody{string(p.Stage), p.Done, p.Total}})
}

func (v *messagesVoice) beat(out *eventWriter) { v.send(out, messagesEvent{Type: "ping"}) }

func (v *messagesVoice) close(out *eventWriter, answers []*answer) {
	r := answers[0].result
	reason, sequence := stopReason(r)
	usage := anthropicUsageOf(r)
	v.send(out, messagesEvent{Type: "message_delta", Delta: messageDelta{reason, sequence, r.Warning}, Usage: &usage})
	v.send(out, messagesEvent{Type: "message_stop"})
}

func (v *messagesVoice) fail(out *eventWriter, e *apiError) { out.event("error", anthropicError(e)) }
