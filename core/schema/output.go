package schema

import (
	"encoding/json"
	"errors"

	"calla/core/grammar"
	"calla/core/grammar/dfa"
)

// Output is what a model may write.
type Output struct {
	// Answer is the schema of an answer in JSON; nil: there is no such answer.
	Answer json.RawMessage
	// Tools are those that may be called instead, once, or several times where
	// Parallel is set.
	Tools    []Tool
	Parallel bool
}

// AnyObject is a schema that every JSON object fits.
var AnyObject = json.RawMessage(`{"type":"object"}`)

// Grammar returns the grammar of the whole output. Errors are *Error.
func (o Output) Grammar() (*grammar.Grammar, error) {
	b, m := grammar.NewBuilder(), dfa.NewMaker(dfaWork)
	var all []grammar.State
	if o.Answer != nil {
		w := newWriter(b, m, false)
		s, err := w.answer(o.Answer)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	if len(o.Tools) > 0 {
		after := grammar.Return
		if o.Parallel {
			after = b.Open()
		}
		one, err := calls(b, m, o.Tools, after)
		if err != nil {
			return nil, err
		}
		one = b.Control(CallStart, one)
		if o.Parallel {
			b.Close(after, grammar.Return, b.Literal("\n", one))
		}
		all = append(all, one)
	}
	return finished(b, b.Choice(all...))
}

// Calls returns the grammar of one tool call, from after its first control on.
// Errors are *Error.
func Calls(tools []Tool) (*grammar.Grammar, error) {
	b := grammar.NewBuilder()
	start, err := calls(b, dfa.NewMaker(dfaWork), tools, grammar.Return)
	if err != nil {
		return nil, err
	}
	return finished(b, start)
}

func finished(b *grammar.Builder, start grammar.State) (*grammar.Grammar, error) {
	g, err := b.Grammar(start)
	switch {
	case errors.Is(err, grammar.ErrTooLarge):
		return nil, (*path)(nil).fault("the schema is too large")
	case errors.Is(err, grammar.ErrEndless):
		return nil, (*path)(nil).fault("nothing fits it that is nested less than %d deep", grammar.MaxDepth)
	}
	return g, err
}

// calls writes a call of any of the tools.
func calls(b *grammar.Builder, m *dfa.Maker, tools []Tool, out grammar.State) (grammar.State, error) {
	var all []grammar.State
	for i, t := range tools {
		s, err := newWriter(b, m, true).call(t, out)
		if err != nil {
			err.Tool = i
			return 0, err
		}
		all = append(all, s)
	}
	return b.Choice(all...), nil
}

// answer writes the answers that fit a schema.
func (w *writer) answer(raw json.RawMessage) (grammar.State, error) {
	root, err := parse(raw)
	if err != nil {
		return 0, (*path)(nil).fault("%v", err)
	}
	n, fault := readSchema(root, w.maker)
	if fault != nil {
		return 0, fault
	}
	s := w.value(n, grammar.Return)
	if fault := w.finish(); fault != nil {
		return 0, fault
	}
	return s, nil
}
