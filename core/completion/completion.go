// Package completion makes one completion: it renders a conversation, encodes
// it, has the engine generate, decodes what comes and splits it into reasoning,
// content and tool calls. It knows no HTTP and no wire format.
package completion

import (
	"encoding/json"

	"calla/core/chat"
	"calla/core/engine"
)

// Request asks for one completion. Exactly one of Messages, Prompt and Tokens
// is set.
type Request struct {
	Messages []chat.Message // a conversation, rendered by the model's template
	Prompt   *string        // or text as it is, control tokens matched in it
	Tokens   []int32        // or tokens as they are

	Tools []json.RawMessage // OpenAI's tool objects, in the client's order
	// Strict says, by tool, that arguments are held to the schema of the tool's
	// parameters. Nil holds none.
	Strict []bool
	// MustCall makes the completion a tool call, of the tool named Callee where
	// that is not empty. Arguments are then held to their schemas.
	MustCall   bool
	Callee     string
	SingleCall bool // one tool call at most
	// Answer, where not nil, is a JSON Schema: the completion, but for its
	// thought, is JSON that fits it, or else a tool call.
	Answer json.RawMessage

	Thinking         bool // the model may think before it answers
	ThinkingBudget   int  // most tokens of thought; 0 is no bound
	PreserveThinking bool // earlier thoughts stay in the prompt

	MaxTokens int      // 0 runs to the end of the context
	Stop      []string // texts that end the completion, and are not part of it
	Sampling  engine.Sampling
	LogProbs  int // see engine.Request
	CacheKey  string
}

// Kind says what an Event is.
type Kind uint8

// The kinds of events. A completion is any number of Progress, then Reasoning,
// Content, ToolCall and Arguments in the order the model wrote them, then one
// Done.
const (
	Progress  Kind = iota + 1
	Reasoning      // Text: more of the thought
	Content        // Text: more of the answer
	ToolCall       // Index, Name: a call begins
	Arguments      // Index, Text: more of the call's arguments, a JSON object
	Done           // Result
)

// Event is one step of a completion. Text is never empty where the kind has
// it, and always whole characters.
type Event struct {
	Kind     Kind
	Text     string
	Index    int
	Name     string
	Tokens   []Token // the tokens behind Text, where log-probabilities were asked for
	Progress engine.Progress
	Result   *Result
}

// Token is a generated token with its log-probability.
type Token struct {
	ID      int32
	Bytes   []byte // of its text; may be part of a character
	LogProb float64
	Top     []Token
}

// Reason says why a completion ended.
type Reason string

// The reasons of a completion's end.
const (
	ReasonStop      Reason = "stop"
	ReasonLength    Reason = "length"
	ReasonToolCalls Reason = "tool_calls"
)

// Result is the end of a completion.
type Result struct {
	Reason Reason
	// StopText is the entry of Request.Stop that ended it, if one did.
	StopText         string
	PromptTokens     int
	CachedTokens     int
	CompletionTokens int
	ReasoningTokens  int // of the completion
	Tokens           []int32
	Miss             *engine.CacheMiss
	Warning          string
	Timing           engine.Timing
}
