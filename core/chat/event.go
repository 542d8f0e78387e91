package chat

import (
	"encoding/json"
	"strings"
)

// Event is a piece of what a model said.
type Event struct {
	Kind EventKind
	Text string // of a delta
	Call int    // which call, from 0 on; of the events of calls
	Name string // of the tool; of CallOpened
}

// EventKind says what an event is.
type EventKind uint8

const (
	// ReasoningDelta and ContentDelta continue the thought and the answer.
	ReasoningDelta EventKind = iota + 1
	ContentDelta
	// CallOpened begins a tool call. ArgumentsDelta follow; their texts make
	// one JSON object. Then comes CallFinished.
	CallOpened
	ArgumentsDelta
	CallFinished
	// CallTruncated is the last event of an output that ended within a call.
	// What came of that call, if it was opened at all, is no call.
	CallTruncated
)

// Reply puts events together again. Its zero value is empty.
type Reply struct {
	reasoning, content, arguments strings.Builder
	name                          string
	calls                         []ToolCall
	truncated                     bool
}

// Add takes the next events of one Parser.
func (r *Reply) Add(events ...Event) {
	for _, e := range events {
		switch e.Kind {
		case ReasoningDelta:
			r.reasoning.WriteString(e.Text)
		case ContentDelta:
			r.content.WriteString(e.Text)
		case CallOpened:
			r.name = e.Name
		case ArgumentsDelta:
			r.arguments.WriteString(e.Text)
		case CallFinished:
			r.calls = append(r.calls, ToolCall{r.name, json.RawMessage(r.arguments.String())})
			r.arguments.Reset()
		case CallTruncated:
			r.truncated = true
		}
	}
}

// Reasoning returns the thought.
func (r *Reply) Reasoning() string { return r.reasoning.String() }

// Content returns the answer.
func (r *Reply) Content() string { return r.content.String() }

// Calls returns the finished tool calls.
func (r *Reply) Calls() []ToolCall { return r.calls }

// Truncated says that the output ended within a tool call.
func (r *Reply) Truncated() bool { return r.truncated }
