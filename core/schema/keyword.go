package schema

import "slices"

// keyword says how a keyword is treated.
type keyword uint8

const (
	unknown   keyword = iota
	describes         // says nothing about what is valid
	holds             // is held to
)

var keywords = map[string]keyword{
	"$comment": describes, "$schema": describes, "$id": describes, "title": describes, "description": describes, "default": describes,
	"examples": describes, "deprecated": describes, "readOnly": describes, "writeOnly": describes, "contentEncoding": describes,
	"contentMediaType": describes, "contentSchema": describes, "discriminator": describes,
	"$defs": describes, "definitions": describes, // a place for what $ref names

	"$ref": holds, "anyOf": holds, "oneOf": holds, "allOf": holds, "type": holds, "enum": holds, "const": holds,
	"properties": holds, "required": holds, "additionalProperties": holds,
	"items": holds, "prefixItems": holds, "minItems": holds, "maxItems": holds,
	"minimum": holds, "maximum": holds, "exclusiveMinimum": holds, "exclusiveMaximum": holds,
	"minLength": holds, "maxLength": holds, "pattern": holds, "format": holds,
}

// Keywords returns the keywords that are held to, in order.
func Keywords() []string {
	var all []string
	for k, how := range keywords {
		if how == holds {
			all = append(all, k)
		}
	}
	slices.Sort(all)
	return all
}

// Formats returns the formats that are held to, in order.
func Formats() []string {
	var all []string
	for f := range formats {
		all = append(all, f)
	}
	slices.Sort(all)
	return all
}

// harmless reports whether a keyword that is not held to asks for nothing with
// this value.
func harmless(name string, v *value) bool {
	switch name {
	case "uniqueItems", "nullable":
		return v.literal == "false"
	case "minProperties", "minContains":
		return v.literal == "0"
	}
	return false
}

// known refuses keywords that are not held to.
func known(at *path, v *value) *Error {
	for _, m := range v.members {
		if at != nil && (m.name == "$id" || m.name == "$schema") {
			return at.to(m.name).fault("only the whole schema may have it")
		}
		if keywords[m.name] == unknown && !harmless(m.name, m.value) {
			return at.to(m.name).fault("this keyword is not supported")
		}
	}
	return nil
}

// alone refuses keywords that are held to beside one that is read alone.
func alone(at *path, v *value, name string) *Error {
	for _, m := range v.members {
		if m.name != name && keywords[m.name] == holds {
			return at.to(m.name).fault("beside %s this keyword is not supported", name)
		}
	}
	return nil
}

var kindNames = map[string]kind{
	"null": null, "boolean": boolean, "integer": integer, "number": number | integer, "string": text, "array": array, "object": object,
}

// kindsOf reads type.
func kindsOf(v *value) kind {
	t := v.get("type")
	if t == nil {
		return anyKind
	}
	if t.kind == text {
		return kindNames[t.text]
	}
	var k kind
	for _, name := range t.texts() {
		k |= kindNames[name]
	}
	return k
}
