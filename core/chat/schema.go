package chat

import (
	"encoding/json"
	"strings"
)

// kinds are the JSON types that a declaration admits for a value.
//
// A value that may only be a string, or of which nothing is said, is the
// string as the model wrote it. One that may be a string or null is null where
// it is the word null. One that may be a string or something else is a string.
// Any other is JSON, in which Python's True, False and None count; where it
// cannot be read as JSON, it is a string all the same.
type kinds uint8

const (
	isString kinds = 1 << iota
	isNull
	isOther // number, integer, boolean, object or array
)

// convert makes JSON of a value.
func (k kinds) convert(value string) string {
	if k&isNull != 0 && value == "null" {
		return value
	}
	if k&isString == 0 {
		if printed, err := relaxedJSON(value); err == nil {
			return printed
		}
	}
	return string(appendQuoted(nil, value))
}

// declaration is what a tool's declaration says of its parameters.
type declaration struct {
	schema json.RawMessage // of all parameters
	// properties are read when the tool is called for the first time.
	properties map[string]json.RawMessage
	read       bool
}

// declarations reads the tools of a request by name; nil where there are none.
// What cannot be read says nothing about types, and that is all.
func declarations(tools []json.RawMessage) map[string]*declaration {
	if len(tools) == 0 {
		return nil
	}
	byName := map[string]*declaration{}
	for _, raw := range tools {
		tool := object(raw)
		if f := object(tool["function"]); f != nil {
			tool = f
		}
		var name string
		if json.Unmarshal(tool["name"], &name) == nil {
			byName[name] = &declaration{schema: tool["parameters"]}
		}
	}
	return byName
}

// object and array give nothing where raw is something else.
func object(raw json.RawMessage) (m map[string]json.RawMessage) {
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func array(raw json.RawMessage) (list []json.RawMessage) {
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

func (d *declaration) property(name string) (json.RawMessage, bool) {
	if d == nil {
		return nil, false
	}
	if !d.read {
		d.read, d.properties = true, object(object(d.schema)["properties"])
	}
	raw, ok := d.properties[name]
	return raw, ok
}

// has says whether a parameter is declared.
func (d *declaration) has(name string) bool {
	_, ok := d.property(name)
	return ok
}

func (d *declaration) kinds(name string) kinds {
	raw, ok := d.property(name)
	if !ok {
		return isString
	}
	r := resolver{root: d.schema, budget: 1<<16 + 8*len(d.schema)}
	if k := r.kinds(raw); k != 0 {
		return k
	}
	return isString
}

// typeNames reads a schema's type: a name or a list of names.
func typeNames(raw json.RawMessage) (names []string) {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		return []string{name}
	}
	for _, element := range array(raw) {
		if json.Unmarshal(element, &name) == nil {
			names = append(names, name)
		}
	}
	return names
}

func kindOfType(name string) kinds {
	switch name {
	case "string":
		return isString
	case "null":
		return isNull
	case "number", "integer", "boolean", "object", "array":
		return isOther
	}
	return 0
}

// kindOfValue takes the values of an enumeration.
func kindOfValue(raw json.RawMessage) kinds {
	switch {
	case len(raw) == 0:
		return 0
	case raw[0] == '"':
		return isString
	case raw[0] == 'n':
		return isNull
	}
	return isOther
}

// resolver finds the types of a schema. References may go in circles, and the
// same one may be followed any number of times: the budget, in bytes read,
// bounds both.
type resolver struct {
	root   json.RawMessage
	budget int
}

func (r *resolver) kinds(raw json.RawMessage) (k kinds) {
	if r.budget -= len(raw); r.budget < 0 {
		return 0
	}
	schema := object(raw)
	for _, name := range typeNames(schema["type"]) {
		k |= kindOfType(name)
	}
	if k != 0 {
		return k
	}
	for _, list := range []string{"anyOf", "oneOf", "allOf"} {
		for _, choice := range array(schema[list]) {
			k |= r.kinds(choice)
		}
	}
	for _, value := range append(array(schema["enum"]), schema["const"]) {
		k |= kindOfValue(value)
	}
	if schema["properties"] != nil || schema["items"] != nil {
		k |= isOther
	}
	var reference string
	if json.Unmarshal(schema["$ref"], &reference) == nil {
		k |= r.kinds(r.find(reference))
	}
	return k
}

// find follows a reference within the schema: "#/$defs/Item".
func (r *resolver) find(reference string) json.RawMessage {
	path, found := strings.CutPrefix(reference, "#/")
	if !found {
		return nil
	}
	at := r.root
	for step := range strings.SplitSeq(path, "/") {
		if r.budget -= len(at); r.budget < 0 {
			return nil
		}
		at = object(at)[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return at
}

// Reading says what the value of a parameter can be read as.
type Reading struct {
	Text bool // as the string that it is, whatever stands there
	Null bool // and the word null as null
}

// ReadsParameter says how a Parser reads a parameter of a tool. What it does not
// read as text is JSON.
func ReadsParameter(tool json.RawMessage, name string) Reading {
	for _, d := range declarations([]json.RawMessage{tool}) {
		k := d.kinds(name)
		return Reading{Text: k&isString != 0, Null: k&isNull != 0}
	}
	return Reading{Text: true}
}
