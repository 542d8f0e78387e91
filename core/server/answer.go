package server

import (
	"encoding/json"
	"strings"

	"calla/core/completion"
)

// answer is what has come of one completion so far: blocks in the order in
// which the model wrote them.
type answer struct {
	blocks []*block
	calls  []*block           // those of tool calls, by the index of events
	result *completion.Result // set by Done
}

// block is a stretch of an answer of one kind: a thought, text, or a call.
type block struct {
	kind   completion.Kind // Reasoning, Content or ToolCall
	text   strings.Builder // of a call, its arguments
	id     string          // without an API's prefix
	name   string          // of a called tool
	tokens []completion.Token
}

func (a *answer) add(e completion.Event) {
	switch e.Kind {
	case completion.Reasoning, completion.Content:
		b := a.last()
		if b == nil || b.kind != e.Kind {
			b = a.begin(e.Kind)
		}
		b.text.WriteString(e.Text)
		b.tokens = append(b.tokens, e.Tokens...)
	case completion.ToolCall:
		b := a.begin(e.Kind)
		b.name = e.Name
		a.calls = append(a.calls, b)
	case completion.Arguments:
		a.calls[e.Index].text.WriteString(e.Text)
	case completion.Done:
		a.result = e.Result
	}
}

func (a *answer) begin(kind completion.Kind) *block {
	b := &block{kind: kind, id: newID("")}
	a.blocks = append(a.blocks, b)
	return b
}

// last returns the newest block, or nil.
func (a *answer) last() *block {
	if len(a.blocks) == 0 {
		return nil
	}
	return a.blocks[len(a.blocks)-1]
}

// whole returns the blocks of an answer that has ended. A call that the end cut
// off is none: whoever ran it would run what the model did not say.
func (a *answer) whole() []*block {
	b := a.last()
	if b != nil && b.kind == completion.ToolCall && !json.Valid([]byte(b.text.String())) {
		return a.blocks[:len(a.blocks)-1]
	}
	return a.blocks
}

// wholeCalls returns the calls of an answer that has ended.
func (a *answer) wholeCalls() []*block {
	var calls []*block
	for _, b := range a.whole() {
		if b.kind == completion.ToolCall {
			calls = append(calls, b)
		}
	}
	return calls
}

// text joins the blocks of one kind.
func (a *answer) text(kind completion.Kind) string {
	var s strings.Builder
	for _, b := range a.blocks {
		if b.kind == kind {
			s.WriteString(b.text.String())
		}
	}
	return s.String()
}

// contentTokens returns the tokens behind the content.
func (a *answer) contentTokens() []completion.Token {
	var all []completion.Token
	for _, b := range a.blocks {
		if b.kind == completion.Content {
			all = append(all, b.tokens...)
		}
	}
	return all
}

// blockTurns tells a stream where the blocks of an answer begin and end.
type blockTurns struct{ seen int }

// follow calls end for the block that the newest event ended, if it did, and
// begin for the one that it began.
func (t *blockTurns) follow(a *answer, begin, end func(index int, b *block)) {
	ended := a.result != nil
	if t.seen > 0 && (ended || len(a.blocks) > t.seen) {
		end(t.seen-1, a.blocks[t.seen-1])
	}
	if len(a.blocks) > t.seen {
		t.seen++
		begin(t.seen-1, a.blocks[t.seen-1])
	}
}
