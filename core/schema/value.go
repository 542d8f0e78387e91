package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
)

// kind is a JSON type.
type kind uint8

const (
	null kind = 1 << iota
	boolean
	integer // a number without a fraction is both
	number
	text
	array
	object

	anyKind = null | boolean | integer | number | text | array | object
)

// value is JSON with its members in their order.
type value struct {
	kind    kind
	literal string // of a number, true, false or null, as it was written
	text    string
	items   []*value
	members []member
}

type member struct {
	name  string
	value *value
}

func (v *value) get(name string) *value {
	for _, m := range v.members {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// Bounds of a schema's text.
const (
	maxBytes = 1 << 19
	maxNest  = 100
)

// parse reads one JSON text.
func parse(raw json.RawMessage) (*value, error) {
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("it has %d bytes, want at most %d", len(raw), maxBytes)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := read(d, 0)
	if err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("something comes after its end")
	}
	return v, nil
}

func read(d *json.Decoder, depth int) (*value, error) {
	t, err := d.Token()
	if err != nil {
		return nil, errors.New("it is not JSON")
	}
	if depth > maxNest {
		return nil, fmt.Errorf("it is nested deeper than %d", maxNest)
	}
	switch t := t.(type) {
	case json.Delim:
		if t == '{' {
			return readObject(d, depth)
		}
		return readArray(d, depth)
	case string:
		return &value{kind: text, text: t}, nil
	case json.Number:
		return &value{kind: number, literal: t.String()}, nil
	case bool:
		return &value{kind: boolean, literal: fmt.Sprint(t)}, nil
	}
	return &value{kind: null, literal: "null"}, nil
}

func readArray(d *json.Decoder, depth int) (*value, error) {
	v := &value{kind: array}
	for d.More() {
		item, err := read(d, depth+1)
		if err != nil {
			return nil, err
		}
		v.items = append(v.items, item)
	}
	_, err := d.Token()
	return v, err
}

func readObject(d *json.Decoder, depth int) (*value, error) {
	v := &value{kind: object}
	seen := map[string]bool{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errors.New("it is not JSON")
		}
		m := member{name: name.(string)}
		if m.value, err = read(d, depth+1); err != nil {
			return nil, err
		}
		if seen[m.name] {
			return nil, errors.New("it has two members of one name")
		}
		seen[m.name] = true
		v.members = append(v.members, m)
	}
	_, err := d.Token()
	return v, err
}

// plain returns the value as the validator has it.
func (v *value) plain() any {
	switch v.kind {
	case null:
		return nil
	case boolean:
		return v.literal == "true"
	case number:
		return json.Number(v.literal)
	case text:
		return v.text
	case array:
		items := make([]any, len(v.items))
		for i, item := range v.items {
			items[i] = item.plain()
		}
		return items
	}
	members := make(map[string]any, len(v.members))
	for _, m := range v.members {
		members[m.name] = m.value.plain()
	}
	return members
}

// texts returns the strings of an array of strings.
func (v *value) texts() []string {
	var all []string
	for _, item := range v.items {
		all = append(all, item.text)
	}
	return all
}

func (v *value) has(name string) bool {
	return slices.ContainsFunc(v.members, func(m member) bool { return m.name == name })
}
