package schema

import (
	"strconv"
)

// array reads the keywords of arrays.
func (r *reader) array(n *node, v *value) *Error {
	a := &n.items
	var err *Error
	if a.min, err = count(n, v, "minItems", 0, maxCount); err != nil {
		return err
	}
	if a.max, err = count(n, v, "maxItems", -1, maxCount); err != nil {
		return err
	}
	if n.kinds&array == 0 {
		return nil
	}
	if first := v.get("prefixItems"); first != nil {
		for i, item := range first.items {
			one, err := r.node(n.at.to("prefixItems", strconv.Itoa(i)), item)
			if err != nil {
				return err
			}
			a.first = append(a.first, one)
		}
	}
	a.rest, err = r.orAny(n.at.to("items"), v.get("items"))
	return err
}

// orAny reads a schema that may be absent.
func (r *reader) orAny(at *path, v *value) (*node, *Error) {
	if v == nil {
		return anything, nil
	}
	if v.kind == array {
		return nil, at.fault("a list of schemas is not supported; use prefixItems")
	}
	return r.node(at, v)
}

// anything is the node of a schema without keywords.
var anything = func() *node {
	n := &node{kinds: anyKind, strings: stringNode{max: -1}, items: arrayNode{max: -1}}
	n.items.rest, n.members.extra = n, n
	return n
}()

// object reads the keywords of objects.
func (r *reader) object(n *node, v *value) *Error {
	if n.kinds&object == 0 {
		return nil
	}
	o := &n.members
	required := map[string]bool{}
	if names := v.get("required"); names != nil {
		for _, name := range names.texts() {
			required[name] = true
		}
	}
	declared := map[string]bool{}
	if properties := v.get("properties"); properties != nil {
		for _, m := range properties.members {
			one, err := r.node(n.at.to("properties", m.name), m.value)
			if err != nil {
				return err
			}
			declared[m.name] = true
			o.list = append(o.list, property{m.name, required[m.name], one})
		}
	}
	var err *Error
	if o.extra, err = r.orAny(n.at.to("additionalProperties"), v.get("additionalProperties")); err != nil {
		return err
	}
	if names := v.get("required"); names != nil {
		for _, name := range names.texts() {
			if !declared[name] {
				declared[name] = true
				o.list = append(o.list, property{name, true, o.extra})
			}
		}
	}
	return nil
}
