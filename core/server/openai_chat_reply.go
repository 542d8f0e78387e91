package server

import (
	"time"

	"calla/core/completion"
	"calla/core/engine"
)

// chatVoice answers in the words of OpenAI's chat completions.
type chatVoice struct {
	unnamedEvents
	id, model string
	created   int64
	choices   int
	usage     bool // asked for in a stream
	logProbs  bool
}

func newChatVoice(model string, c *chatRequest) *chatVoice {
	return &chatVoice{
		id: newID("chatcmpl-"), model: model, created: time.Now().Unix(),
		usage: c.StreamOptions.IncludeUsage, logProbs: c.LogProbs,
	}
}

type chatCompletion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []chatChoice `json:"choices"`
	Usage   *openAIUsage `json:"usage,omitempty"`
}

type chatChoice struct {
	Index        int           `json:"index"`
	Message      chatMessage   `json:"message"`
	LogProbs     *chatLogProbs `json:"logprobs"`
	FinishReason string        `json:"finish_reason"`
	Warning      string        `json:"warning,omitempty"` // beside OpenAI's fields
}

type chatMessage struct {
	Role             string         `json:"role"`
	Content          *string        `json:"content"`
	ReasoningContent string         `json:"reasoning_content,omitempty"`
	Refusal          *string        `json:"refusal"`
	ToolCalls        []chatToolCall `json:"tool_calls,omitempty"`
}

type chatToolCall struct {
	Index    *int         `json:"index,omitempty"` // in streams
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function chatFunction `json:"function"`
}

type chatFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatChunk struct {
	ID       string            `json:"id"`
	Object   string            `json:"object"`
	Created  int64             `json:"created"`
	Model    string            `json:"model"`
	Choices  []chatChunkChoice `json:"choices"`
	Usage    *openAIUsage      `json:"usage,omitempty"`
	Progress *progressBody     `json:"progress,omitempty"` // beside OpenAI's fields
}

type chatChunkChoice struct {
	Index        int           `json:"index"`
	Delta        chatDelta     `json:"delta"`
	LogProbs     *chatLogProbs `json:"logprobs"`
	FinishReason *string       `json:"finish_reason"`
	Warning      string        `json:"warning,omitempty"`
}

type chatDelta struct {
	Role             string         `json:"role,omitempty"`
	Content          *string        `json:"content,omitempty"`
	ReasoningContent string         `json:"reasoning_content,omitempty"`
	ToolCalls        []chatToolCall `json:"tool_calls,omitempty"`
}

func (v *chatVoice) begin(prompts [][]int32) { v.choices = len(prompts) }

func (v *chatVoice) whole(answers []*answer) any {
	c := &chatCompletion{
		ID: v.id, Object: "chat.completion", Created: v.created, Model: v.model,
		Usage: usageOf(answers, len(answers)),
	}
	for i, a := range answers {
		choice := chatChoice{Index: i, Message: chatMessageOf(a), FinishReason: string(a.result.Reason), Warning: a.result.Warning}
		if v.logProbs {
			choice.LogProbs = chatLogProbsOf(a.contentTokens())
		}
		c.Choices = append(c.Choices, choice)
	}
	return c
}

func chatMessageOf(a *answer) chatMessage {
	m := chatMessage{Role: "assistant", ReasoningContent: a.text(completion.Reasoning)}
	calls := a.wholeCalls()
	if content := a.text(completion.Content); content != "" || len(calls) == 0 {
		m.Content = &content
	}
	for _, c := range calls {
		m.ToolCalls = append(m.ToolCalls, chatToolCall{
			ID: callID(c), Type: "function", Function: chatFunction{c.name, c.text.String()},
		})
	}
	return m
}

func callID(b *block) string { return "call_" + b.id }

func (v *chatVoice) chunk(choices ...chatChunkChoice) *chatChunk {
	if choices == nil {
		choices = []chatChunkChoice{}
	}
	return &chatChunk{ID: v.id, Object: "chat.completion.chunk", Created: v.created, Model: v.model, Choices: choices}
}

// open says whose turn it is; the first words may be long in coming.
func (v *chatVoice) open(out *eventWriter) {
	empty := ""
	for i := range v.choices {
		out.event("", v.chunk(chatChunkChoice{Index: i, Delta: chatDelta{Role: "assistant", Content: &empty}}))
	}
}

func (v *chatVoice) event(out *eventWriter, choice int, e completion.Event, a *answer) {
	c := chatChunkChoice{Index: choice}
	switch e.Kind {
	case completion.Reasoning:
		c.Delta.ReasoningContent = e.Text
	case completion.Content:
		c.Delta.Content = &e.Text
		if v.logProbs {
			c.LogProbs = chatLogProbsOf(e.Tokens)
		}
	case completion.ToolCall:
		c.Delta.ToolCalls = []chatToolCall{{
			Index: &e.Index, ID: callID(a.calls[e.Index]), Type: "function", Function: chatFunction{Name: e.Name},
		}}
	case completion.Arguments:
		c.Delta.ToolCalls = []chatToolCall{{Index: &e.Index, Function: chatFunction{Arguments: e.Text}}}
	case completion.Done:
		reason := string(e.Result.Reason)
		c.FinishReason, c.Warning = &reason, e.Result.Warning
	}
	out.event("", v.chunk(c))
}

func (v *chatVoice) progress(out *eventWriter, p engine.Progress) {
	chunk := v.chunk()
	chunk.Progress = &progressBody{string(p.Stage), p.Done, p.Total}
	out.event("", chunk)
}

func (v *chatVoice) close(out *eventWriter, answers []*answer) {
	if v.usage {
		chunk := v.chunk()
		chunk.Usage = usageOf(answers, len(answers))
		out.event("", chunk)
	}
	out.done()
}
