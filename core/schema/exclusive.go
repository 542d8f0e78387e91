package schema

import (
	"encoding/json"
	"slices"
)

// exclusive reports whether no value fits two of a node's alternatives, as far
// as is plain to see.
func (n *node) exclusive() bool {
	leaves := make([][]*node, len(n.any))
	for i, one := range n.any {
		one.each(func(leaf *node) { leaves[i] = append(leaves[i], leaf) })
	}
	for i, some := range leaves {
		for _, others := range leaves[:i] {
			for _, a := range some {
				if slices.ContainsFunc(others, func(b *node) bool { return !apart(a, b) }) {
					return false
				}
			}
		}
	}
	return true
}

// apart reports whether two nodes without alternatives have plainly no value in
// common: they differ in type, in their constants, or in those of a member that
// both require.
func apart(a, b *node) bool {
	switch common := a.types() & b.types(); {
	case common == 0:
		return true
	case a.isConst && b.isConst:
		return differ(a.constants, b.constants)
	case common != object || a.isConst || b.isConst:
		return false
	}
	for _, p := range a.members.list {
		for _, q := range b.members.list {
			if p.name == q.name && p.required && q.required && differ(p.node.onlyConstants(), q.node.onlyConstants()) {
				return true
			}
		}
	}
	return false
}

func (n *node) types() kind {
	if !n.isConst {
		return n.kinds
	}
	var k kind
	for _, c := range n.constants {
		k |= c.kinds()
	}
	return k
}

// onlyConstants returns all the values that fit a node, or nil where it admits
// others than constants.
func (n *node) onlyConstants() []*value {
	var all []*value
	only := true
	n.each(func(one *node) {
		only = only && one.isConst
		all = append(all, one.constants...)
	})
	if !only {
		return nil
	}
	return all
}

// differ reports whether two lists of constants, neither empty, have none in
// common. Numbers that are equal may be written in two ways, so of them it says
// no.
func differ(a, b []*value) bool {
	if len(a) == 0 || len(b) == 0 {
		return false
	}
	seen := map[string]bool{}
	for _, v := range a {
		seen[v.print()] = true
	}
	return !slices.ContainsFunc(b, func(v *value) bool {
		return v.kind&(number|array|object) != 0 || seen[v.print()]
	})
}

func (v *value) print() string {
	b, err := json.Marshal(v.plain())
	if err != nil {
		panic("schema: print a value: " + err.Error())
	}
	return string(b)
}
