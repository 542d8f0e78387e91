// Package chat is the model's chat template in both directions: it renders a
// conversation into the segments of a prompt, and it parses what the model
// writes into reasoning, content and tool calls.
//
// Rendering gives byte for byte what the published template gives, errors
// included, in segments: the template's control tokens apart from text. What
// people or tools wrote is never a control token, whatever it looks like, so a
// message that holds "<|im_end|>" cannot end its own turn. The template's
// plain text and people's text share a segment where they touch, because the
// tokenizer must see them joined.
//
// Parsing is a Parser, fed with text and, apart from it, control tokens as the
// model produces them. Its rules stand at the head of that type.
//
// JSON of clients (tools, arguments) is printed as Python's
// json.dumps(ensure_ascii=False) prints what json.loads read, because that is
// what the model was trained on: `, ` and `: ` between things, keys in the
// client's order, of equal keys the first one's place and the last one's
// value, 1.50 as 1.5, 1E5 as 100000.0, -0 as 0. It is stricter than Python in
// that NaN and Infinity, a surrogate without its partner and invalid UTF-8 are
// refused, and in its bounds on depth and size.
//
// Tokens, HTTP and the wire format of messages belong to the packages above,
// which also see to it that the text they hand over is valid UTF-8.
package chat

import "encoding/json"

// The control tokens that the template writes, each one token of the
// vocabulary.
const (
	TurnStart     = "<|im_start|>"
	TurnEnd       = "<|im_end|>"
	ThinkStart    = "<think>"
	ThinkEnd      = "</think>"
	CallStart     = "<tool_call>"
	CallEnd       = "</tool_call>"
	ResponseStart = "<tool_response>"
	ResponseEnd   = "</tool_response>"
)

// ControlTokens returns all of them: what a vocabulary must have.
func ControlTokens() []string {
	return []string{TurnStart, TurnEnd, ThinkStart, ThinkEnd, CallStart, CallEnd, ResponseStart, ResponseEnd}
}

// Message is one message of a conversation.
type Message struct {
	Role    string // system, user, assistant or tool
	Content []Part // nil where there is none
	// Reasoning, of an assistant message, is the thought before its content.
	// Where it is nil the template looks for "</think>" in the content.
	Reasoning *string
	ToolCalls []ToolCall // of an assistant message
}

// Part is a piece of a message's content.
type Part struct {
	Kind PartKind
	Text string
}

// PartKind says what a part of a message is.
type PartKind uint8

const (
	TextPart  PartKind = iota
	ImagePart          // refused: the engine reads text
	VideoPart          // refused
	OtherPart          // refused: neither of these
)

// Text is the content of a message that is one string.
func Text(s string) []Part { return []Part{{Text: s}} }

// ToolCall is one call of a tool by the model.
type ToolCall struct {
	Name string
	// Arguments is a JSON object. None at all counts as an empty one.
	Arguments json.RawMessage
}

// Options are the template's variables.
type Options struct {
	// Tools holds each tool's declaration as the client wrote it.
	Tools []json.RawMessage
	// Thinking leaves the think block of the generation prompt open for the
	// model to fill; without it the prompt holds an empty one.
	Thinking bool
	// PreserveThinking keeps the thoughts of earlier turns, which the template
	// drops otherwise.
	PreserveThinking bool
	// AddGenerationPrompt ends the prompt where the assistant's turn begins.
	AddGenerationPrompt bool
}

// Prompt is a rendered conversation.
type Prompt struct {
	Segments []Segment
	// SystemEnd and QueryEnd count the segments up to the end of the system
	// block and of the last user message that is no tool response: places up
	// to which a later prompt of the same conversation stays the same.
	// SystemEnd is 0 where there is no system block.
	SystemEnd, QueryEnd int
	// InThink says that the prompt ends inside a think block.
	InThink bool
}

// Segment is a stretch of a rendered prompt. Two text segments never touch.
type Segment struct {
	Text string
	// Control marks Text as one control token; else it is text in which
	// nothing is a control token.
	Control bool
}

// Error says why a conversation is refused. It never holds text of people.
type Error struct {
	// Path names the place: "messages[2].content[0]", "tools[1]".
	Path   string
	Reason string
}

func (e *Error) Error() string { return "chat: " + e.Path + ": " + e.Reason }
