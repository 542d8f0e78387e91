// Package strictjson parses JSON that strangers wrote, into a tree that keeps
// what they wrote.
//
// It takes exactly RFC 8259: one value, valid UTF-8, no byte order mark, names
// unique within their object and taken as they are, surrogates in pairs,
// nothing after the value. Depth and the number of values are bounded, so that
// the work is linear in the input and the tree a small multiple of it. What a
// value means is left to the caller.
package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// Kind is the type of a Value.
type Kind uint8

// The kinds of values.
const (
	Null Kind = iota
	Bool
	Number
	String
	Array
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// Value is one JSON value.
type Value struct {
	Kind    Kind
	Raw     []byte   // as it was sent, a part of the parsed input
	Items   []Value  // of an Array
	Members []Member // of an Object, in the order they were sent
}

// Member is a name of an object and its value.
type Member struct {
	Name  string
	Value Value
}

// Text returns what a String says, and "" for other kinds.
func (v Value) Text() string {
	if v.Kind != String {
		return ""
	}
	return unquote(v.Raw)
}

// Get returns the object's member of that very name.
func (v Value) Get(name string) (Value, bool) {
	for _, m := range v.Members {
		if m.Name == name {
			return m.Value, true
		}
	}
	return Value{}, false
}

// unquote returns the text of a string literal that was checked before.
func unquote(raw []byte) string {
	inner := raw[1 : len(raw)-1]
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner)
	}
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("strictjson: checked string does not decode: " + err.Error())
	}
	return s
}

// Limits bound what Parse takes.
type Limits struct {
	Depth  int // of arrays and objects in each other
	Values int // in all, names not counted
}

// Error is a fault of the input. It never holds any of the input's text.
type Error struct {
	Offset int // in bytes
	Fault  string
}

func (e *Error) Error() string { return fmt.Sprintf("strictjson: byte %d: %s", e.Offset, e.Fault) }
