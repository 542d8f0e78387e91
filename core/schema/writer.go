package schema

import (
	"strings"

	"calla/core/grammar"
	"calla/core/grammar/dfa"
)

// writer writes nodes as a grammar of JSON. Like the builder it goes from the
// end to the start: out is what comes after.
type writer struct {
	*grammar.Builder
	maker *dfa.Maker
	// inCall says that the JSON stands in a tool call, where the tag that ends a
	// parameter must not occur.
	inCall bool

	written map[written]grammar.State
	open    map[*node]bool // being written: to come upon one again is a circle
	rules   map[*node]containers
	todo    []func()
	numbers map[numberKey]*grammar.Lexeme
	fault   *Error
}

type written struct {
	n   *node
	out grammar.State
}

// containers are the rules of a node's arrays and objects.
type containers struct{ array, object grammar.Rule }

type numberKey struct {
	whole     bool
	low, high dfa.Bound
}

func newWriter(b *grammar.Builder, m *dfa.Maker, inCall bool) *writer {
	return &writer{
		Builder: b, maker: m, inCall: inCall,
		written: map[written]grammar.State{}, open: map[*node]bool{},
		rules: map[*node]containers{}, numbers: map[numberKey]*grammar.Lexeme{},
	}
}

// finish writes the rules that were called.
func (w *writer) finish() *Error {
	for len(w.todo) > 0 && w.fault == nil {
		next := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		next()
	}
	return w.fault
}

func (w *writer) fail(err *Error) {
	if w.fault == nil {
		w.fault = err
	}
}

// nothing reads no text at all.
func (w *writer) nothing() grammar.State { return w.Choice() }

// value writes what fits a node.
func (w *writer) value(n *node, out grammar.State) grammar.State {
	k := written{n, out}
	if s, ok := w.written[k]; ok {
		return s
	}
	if w.open[n] {
		w.fail(n.at.fault("it refers to itself without anything in between"))
		return w.nothing()
	}
	w.open[n] = true
	s := w.fresh(n, out)
	delete(w.open, n)
	w.written[k] = s
	return s
}

func (w *writer) fresh(n *node, out grammar.State) grammar.State {
	var all []grammar.State
	switch {
	case n.refers != nil:
		return w.value(n.refers, out)
	case n.any != nil:
		for _, one := range n.any {
			all = append(all, w.value(one, out))
		}
	case n.isConst:
		all = w.constants(n.constants, out)
	default:
		all = w.byKind(n, out)
	}
	return w.Choice(all...)
}

func (w *writer) byKind(n *node, out grammar.State) (all []grammar.State) {
	if n.kinds&null != 0 {
		all = append(all, w.Literal("null", out))
	}
	if n.kinds&boolean != 0 {
		all = append(all, w.Literal("true", out), w.Literal("false", out))
	}
	if n.kinds&(number|integer) != 0 {
		all = append(all, w.number(n, out))
	}
	if n.kinds&text != 0 {
		all = append(all, w.Literal(`"`, w.Lexeme(w.inString(n), out)))
	}
	if n.kinds&(array|object) != 0 {
		rules := w.containers(n)
		if n.kinds&array != 0 {
			all = append(all, w.Call(rules.array, out))
		}
		if n.kinds&object != 0 {
			all = append(all, w.Call(rules.object, out))
		}
	}
	return all
}

// containers returns the rules of a node, which are then to be written.
func (w *writer) containers(n *node) containers {
	r, ok := w.rules[n]
	if ok {
		return r
	}
	r = containers{w.NewRule(), w.NewRule()}
	w.rules[n] = r
	w.Define(r.array, w.nothing())
	w.Define(r.object, w.nothing())
	w.todo = append(w.todo, func() {
		if n.kinds&array != 0 {
			w.Define(r.array, w.array(n))
		}
		if n.kinds&object != 0 {
			w.Define(r.object, w.object(n))
		}
	})
	return r
}

// constants writes several values.
func (w *writer) constants(list []*value, out grammar.State) (all []grammar.State) {
	var texts []string
	for _, c := range list {
		switch c.kind {
		case array, object:
			all = append(all, w.constant(c, out))
		case text:
			texts = append(texts, w.quote(c.text))
		default:
			texts = append(texts, c.literal)
		}
	}
	return append(all, w.Literals(texts, out))
}

// constant writes one value.
func (w *writer) constant(v *value, out grammar.State) grammar.State {
	switch v.kind {
	case text:
		return w.Literal(w.quote(v.text), out)
	case array:
		out = w.Literal("]", out)
		for i := len(v.items) - 1; i >= 0; i-- {
			out = w.constant(v.items[i], out)
			if i > 0 {
				out = w.Literal(",", w.space(out))
			}
		}
		return w.Literal("[", out)
	case object:
		out = w.Literal("}", out)
		for i := len(v.members) - 1; i >= 0; i-- {
			m := v.members[i]
			out = w.Literal(w.quote(m.name)+":", w.space(w.constant(m.value, out)))
			if i > 0 {
				out = w.Literal(",", w.space(out))
			}
		}
		return w.Literal("{", out)
	}
	return w.Literal(v.literal, out)
}

// space writes white space.
func (w *writer) space(out grammar.State) grammar.State { return w.Lexeme(whiteSpace(), out) }

// quote returns the JSON of a string as it may stand here.
func (w *writer) quote(s string) string {
	quoted := dfa.Quote(s)
	if w.inCall {
		quoted = strings.ReplaceAll(quoted, parameterEnd, `<\`+parameterEnd[1:])
	}
	return quoted
}

func (w *writer) number(n *node, out grammar.State) grammar.State {
	whole := n.kinds&number == 0
	low, high := n.numbers.low, n.numbers.high
	if !whole && low == nil && high == nil {
		return w.Lexeme(anyNumber(), out)
	}
	k := numberKey{whole: whole}
	if low != nil {
		k.low = *low
	}
	if high != nil {
		k.high = *high
	}
	l, ok := w.numbers[k]
	if !ok {
		l = w.numbersBetween(n, whole)
		w.numbers[k] = l
	}
	if l == nil {
		return w.nothing()
	}
	return w.Lexeme(l, out)
}

// numbersBetween returns nil where there are none.
func (w *writer) numbersBetween(n *node, whole bool) *grammar.Lexeme {
	between, name := w.maker.Numbers, "minimum"
	if whole {
		between = w.maker.Integers
	}
	set, err := between(n.numbers.low, n.numbers.high)
	switch {
	case err == nil:
		return grammar.NewLexeme(set.Bytes())
	case err != dfa.ErrEmpty:
		w.fail(n.at.to(name).fault("%v", err))
	}
	return nil
}

// inString returns the rest of a string after its first quotation mark.
func (w *writer) inString(n *node) *grammar.Lexeme {
	s := &n.strings
	switch {
	case s.set == nil && w.inCall:
		return grammar.NewCountedLexeme(anyStringInCall(), s.min, s.max)
	case s.set == nil:
		return grammar.NewCountedLexeme(anyString(), s.min, s.max)
	case !w.inCall:
		return grammar.NewLexeme(s.set.JSON())
	}
	set, err := w.maker.Without(s.set, parameterEnd)
	if err != nil {
		w.fail(n.at.to("pattern").fault("it can't be had in a tool call: %v", err))
		return grammar.NewLexeme(anyStringInCall())
	}
	return grammar.NewLexeme(set.JSON())
}
