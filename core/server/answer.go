package server

import (
	"strings"

	"calla/core/completion"
)

// answer is what has come of one completion so far.
type answer struct {
	reasoning strings.Builder
	content   strings.Builder
	calls     []*call
	tokens    []completion.Token // of the content, where log-probabilities were asked for
	result    *completion.Result // set by Done
}

// call is one tool call of an answer.
type call struct {
	id        string // after the API's prefix
	name      string
	arguments strings.Builder
}

func (a *answer) add(e completion.Event) {
	switch e.Kind {
	case completion.Reasoning:
		a.reasoning.WriteString(e.Text)
	case completion.Content:
		a.content.WriteString(e.Text)
		a.tokens = append(a.tokens, e.Tokens...)
	case completion.ToolCall:
		a.calls = append(a.calls, &call{id: newID(""), name: e.Name})
	case completion.Arguments:
		a.calls[e.Index].arguments.WriteString(e.Text)
	case completion.Done:
		a.result = e.Result
	}
}
