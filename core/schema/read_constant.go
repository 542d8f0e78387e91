package schema

import (
	"slices"
)

// constant reads enum and const: those of their values that the other keywords
// admit.
func (r *reader) constant(n *node, v *value) *Error {
	var all []*value
	name := "const"
	if all = []*value{v.get("const")}; all[0] == nil {
		name = "enum"
		all = v.get("enum").items
	}
	if r.constants += len(all); r.constants > maxConstants {
		return n.at.to(name).fault("the schema has more than %d constants", maxConstants)
	}
	others := slices.ContainsFunc(v.members, func(m member) bool {
		return keywords[m.name] == holds && m.name != name && m.name != "type"
	})
	n.isConst = true
	fits := func(c *value) bool { return n.kinds&c.kinds() != 0 }
	if others {
		var err error
		if fits, err = r.checker.fits(n.at); err != nil {
			return n.at.fault("its constants can't be checked")
		}
	}
	for _, c := range all {
		if fits(c) {
			n.constants = append(n.constants, c)
		}
	}
	return nil
}

// kinds returns the types that a value has.
func (v *value) kinds() kind {
	if v.kind != number {
		return v.kind
	}
	if r, ok := rational(v.literal); ok && r.IsInt() {
		return number | integer
	}
	return number
}
