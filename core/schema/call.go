package schema

import (
	"encoding/json"
	"slices"
	"strings"

	"calla/core/chat"
	"calla/core/grammar"
	"calla/core/grammar/dfa"
)

// The controls that stand in tool calls.
const (
	CallStart grammar.Control = iota // chat.CallStart
	CallEnd                          // chat.CallEnd
)

// Controls returns the spelling of each control.
func Controls() []string { return []string{chat.CallStart, chat.CallEnd} }

const (
	parameterStart = "<parameter="
	parameterEnd   = "</parameter>"
	// argumentEnd is what ends a value in a call.
	argumentEnd = "\n" + parameterEnd
)

// notInArgument are marks that a value has not in it: package chat's parser
// would take them for the format's.
var notInArgument = []string{parameterEnd, "\n" + parameterStart}

// Tool is a tool that may be called.
type Tool struct {
	Declaration json.RawMessage // as chat.Options has it
	// Held says that arguments are held to the parameters' schema. Others are
	// whatever the model makes them.
	Held bool
}

// Name returns the tool's name.
func (t Tool) Name() string { return t.function().Name }

// function is what a declaration says of a tool.
type function struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"`
}

func (t Tool) function() function {
	var d struct {
		function
		Function *function `json:"function"`
	}
	if json.Unmarshal(t.Declaration, &d) != nil {
		return function{}
	}
	if d.Function != nil {
		return *d.Function
	}
	return d.function
}

// call writes a call of a tool, from after its first control to its last.
func (w *writer) call(t Tool, out grammar.State) (grammar.State, *Error) {
	d := t.function()
	end := w.Control(CallEnd, out)
	begin := func(s grammar.State) grammar.State { return w.Literal("\n<function="+d.Name+">\n", s) }
	if !t.Held {
		return begin(w.Lexeme(grammar.NewLexeme(anyText()), end)), nil
	}
	end = w.Literal("</function>\n", end)
	if len(d.Parameters) == 0 || string(d.Parameters) == "null" {
		return begin(end), nil
	}
	root, err := parse(d.Parameters)
	if err != nil {
		return 0, (*path)(nil).fault("%v", err)
	}
	n, fault := readSchema(root, w.maker)
	if fault != nil {
		return 0, fault
	}
	object, fault := w.parameters(n)
	if fault != nil {
		return 0, fault
	}
	next := end
	for _, p := range slices.Backward(object.members.list) {
		value, fault := w.argument(p.node, t.Declaration, p.name, next)
		if fault != nil {
			return 0, fault
		}
		one := w.Literal(parameterStart+p.name+">\n", value)
		if p.required {
			next = one
		} else {
			next = w.Choice(one, next)
		}
	}
	return begin(next), w.finish()
}

// parameters returns the node of a tool's arguments: an object.
func (w *writer) parameters(n *node) (*node, *Error) {
	var all []*node
	n.each(func(one *node) {
		if one.kinds&object != 0 && !one.isConst {
			all = append(all, one)
		}
	})
	if len(all) != 1 {
		return nil, n.at.fault("the parameters of a tool must be one object")
	}
	for _, p := range all[0].members.list {
		if p.name == "" || strings.ContainsAny(p.name, "<>\r\n") {
			return nil, all[0].at.to("properties", p.name).fault("a call can't have a parameter of this name")
		}
	}
	return all[0], nil
}

// argument writes a parameter's value and the tag that ends it. What the value
// will be read as is said by package chat: strings stand as they are, others as
// JSON.
func (w *writer) argument(n *node, declaration json.RawMessage, name string, out grammar.State) (grammar.State, *Error) {
	out = w.Literal("\n", out)
	reads := chat.ReadsParameter(declaration, name)
	if !reads.Text {
		return w.value(n, w.Literal(argumentEnd, out)), nil
	}
	var all []grammar.State
	var fault *Error
	n.each(func(one *node) {
		for _, l := range w.rawStrings(one, &fault) {
			all = append(all, w.Lexeme(l, out))
		}
		if reads.Null && one.admitsNull() {
			all = append(all, w.Literal("null"+argumentEnd, out))
		}
	})
	if len(all) == 0 && fault == nil {
		fault = n.at.fault("a call would have a string here, and none fits")
	}
	return w.Choice(all...), fault
}

func (n *node) admitsNull() bool {
	if n.isConst {
		return slices.ContainsFunc(n.constants, func(v *value) bool { return v.kind == null })
	}
	return n.kinds&null != 0
}

// rawStrings returns the strings that fit a node, as they stand in a call, each
// with the tag that ends it.
func (w *writer) rawStrings(n *node, fault **Error) []*grammar.Lexeme {
	set := n.strings.set
	var err error
	switch {
	case n.isConst:
		var texts []string
		for _, c := range n.constants {
			if c.kind == text {
				texts = append(texts, c.text)
			}
		}
		if len(texts) == 0 {
			return nil
		}
		set, err = w.maker.Choice(texts...)
	case n.kinds&text == 0:
		return nil
	case set == nil:
		return []*grammar.Lexeme{grammar.NewCountedLexeme(anyArgument(), n.strings.min, n.strings.max)}
	}
	if err == nil {
		set, err = w.maker.Until(set, argumentEnd, notInArgument...)
	}
	switch err {
	case nil:
		return []*grammar.Lexeme{grammar.NewLexeme(set.Bytes())}
	case dfa.ErrEmpty:
		return nil
	}
	*fault = n.at.fault("its strings can't be had in a call: %v", err)
	return nil
}
