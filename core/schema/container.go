package schema

import (
	"slices"

	"calla/core/grammar"
)

// maxOptional bounds the optional members in a row: each is a way in which the
// text may go on.
const maxOptional = 1500

// array writes the rule of a node's arrays.
func (w *writer) array(n *node) grammar.State {
	a := &n.items
	end := w.Literal("]", grammar.Return)
	empty := w.nothing()
	if a.min == 0 {
		empty = end
	}
	item := func(i int, out grammar.State) grammar.State {
		if i < len(a.first) {
			return w.value(a.first[i], out)
		}
		return w.value(a.rest, out)
	}
	if a.max == 0 || a.max > 0 && a.max < a.min {
		return w.Literal("[", w.space(empty))
	}
	// after is what comes after i items.
	var after grammar.State
	i := a.max
	if a.max < 0 {
		i = max(a.min, len(a.first), 1)
		after = w.Open()
		w.Close(after, w.Literal(",", w.space(item(i, after))), w.space(end))
	} else {
		after = w.space(end)
	}
	for i--; i > 0; i-- {
		more := w.Literal(",", w.space(item(i, after)))
		if after = more; i >= a.min {
			after = w.Choice(more, w.space(end))
		}
	}
	return w.Literal("[", w.space(w.Choice(item(0, after), empty)))
}

// object writes the rule of a node's objects: a chain of the declared members,
// of which optional ones may be passed over, once for a member that is the
// first and once for one after a comma.
func (w *writer) object(n *node) grammar.State {
	o := &n.members
	end := w.Literal("}", grammar.Return)
	// After the declared members come others.
	after := w.Open() // a member, when all that is left is optional
	other := w.other(n, after)
	w.Close(after, w.Literal(",", w.space(other)), w.space(end))
	first := w.Choice(other, end) // of what is left, nothing having come
	next := other                 // of what is left, after a comma
	mayEnd := true                // nothing of what is left is required
	optional := 0                 // in a row
	for _, p := range slices.Backward(o.list) {
		if optional++; p.required {
			optional = 0
		}
		if optional > maxOptional {
			w.fail(n.at.to("properties").fault("more than %d in a row that are not required are not supported", maxOptional))
			return w.nothing()
		}
		member := w.member(p, after)
		if p.required {
			mayEnd, first, next = false, member, member
		} else {
			first, next = w.Choice(member, first), w.Choice(member, next)
		}
		if after = w.Literal(",", w.space(next)); mayEnd {
			after = w.Choice(after, w.space(end))
		}
	}
	return w.Literal("{", w.space(first))
}

// member writes a declared member.
func (w *writer) member(p property, out grammar.State) grammar.State {
	return w.Literal(w.quote(p.name)+":", w.space(w.value(p.node, out)))
}

// other writes a member that is not declared.
func (w *writer) other(n *node, out grammar.State) grammar.State {
	o := &n.members
	if o.extra == nil || o.extra.fitsNothing() {
		return w.nothing()
	}
	value := w.Literal(":", w.space(w.value(o.extra, out)))
	if len(o.list) == 0 {
		return w.Literal(`"`, w.Lexeme(w.inString(anything), value))
	}
	names := make([]string, len(o.list))
	for i, p := range o.list {
		names[i] = p.name
	}
	set, err := w.maker.Except(names...)
	if err == nil && w.inCall {
		set, err = w.maker.Without(set, parameterEnd)
	}
	if err != nil {
		w.fail(n.at.to("properties").fault("their names are too many or too long; with additionalProperties false they need not be looked at"))
		return w.nothing()
	}
	return w.Literal(`"`, w.Lexeme(grammar.NewLexeme(set.JSON()), value))
}
