package schema

import (
	"net/url"
	"strconv"
	"strings"

	"calla/core/grammar/dfa"
)

// Bounds of a schema.
const (
	maxNodes     = 20_000
	maxConstants = 10_000
	// maxExclusive bounds the alternatives of oneOf, each of which is held
	// against each other.
	maxExclusive = 256
	// maxCount bounds minItems and maxItems: each item has its place in the
	// grammar.
	maxCount = 2_000
	// maxLength bounds minLength and maxLength.
	maxLength = 1 << 24
	// dfaWork bounds the work of all patterns of a request.
	dfaWork = 1 << 22
)

// reader makes nodes of a schema.
type reader struct {
	root      *value
	checker   *checker
	maker     *dfa.Maker
	nodes     map[string]*node // by pointer
	constants int
	exclusive []*node // of oneOf
}

// readSchema checks a schema and returns the node of its root.
func readSchema(root *value, maker *dfa.Maker) (*node, *Error) {
	c, err := check(root)
	if err != nil {
		return nil, err
	}
	r := &reader{root: root, checker: c, maker: maker, nodes: map[string]*node{}}
	n, err := r.node(nil, root)
	if err != nil {
		return nil, err
	}
	for _, one := range r.exclusive {
		if !one.exclusive() {
			return nil, one.at.to("oneOf").fault("alternatives must differ in their types, or in a required constant; use anyOf")
		}
	}
	return n, nil
}

// node returns the node of the schema v, which stands at a place.
func (r *reader) node(at *path, v *value) (*node, *Error) {
	key := at.pointer()
	if n, ok := r.nodes[key]; ok {
		return n, nil
	}
	if len(r.nodes) == maxNodes {
		return nil, at.fault("the schema has more than %d parts", maxNodes)
	}
	n := &node{at: at}
	r.nodes[key] = n
	if v.kind == boolean {
		if v.literal == "true" {
			v = &value{kind: object}
		} else {
			return n, nil // no kinds: nothing fits
		}
	}
	if err := known(at, v); err != nil {
		return nil, err
	}
	return n, r.fill(n, v)
}

// fill reads the keywords of a schema.
func (r *reader) fill(n *node, v *value) *Error {
	for _, name := range []string{"$ref", "anyOf", "oneOf", "allOf"} {
		if v.has(name) {
			if err := alone(n.at, v, name); err != nil {
				return err
			}
			return r.combine(n, name, v.get(name))
		}
	}
	n.kinds = kindsOf(v)
	if v.has("enum") || v.has("const") {
		return r.constant(n, v)
	}
	for _, read := range []func(*node, *value) *Error{r.strings, r.numbers, r.array, r.object} {
		if err := read(n, v); err != nil {
			return err
		}
	}
	return nil
}

// combine reads a keyword that takes schemas together.
func (r *reader) combine(n *node, name string, v *value) *Error {
	at := n.at.to(name)
	if name == "$ref" {
		target, err := r.reference(at, v.text)
		n.refers = target
		return err
	}
	if name == "allOf" && len(v.items) > 1 {
		return at.fault("only allOf of one schema is supported")
	}
	if name == "oneOf" && len(v.items) > maxExclusive {
		return at.fault("it has %d alternatives, want at most %d, or anyOf", len(v.items), maxExclusive)
	}
	if name == "oneOf" {
		r.exclusive = append(r.exclusive, n)
	}
	for i, item := range v.items {
		one, err := r.node(at.to(strconv.Itoa(i)), item)
		if err != nil {
			return err
		}
		n.any = append(n.any, one)
	}
	return nil
}

// reference finds the schema that $ref names.
func (r *reader) reference(at *path, ref string) (*node, *Error) {
	fragment, local := strings.CutPrefix(ref, "#")
	if !local || fragment != "" && fragment[0] != '/' {
		return nil, at.fault("only references within the schema are supported, as #/$defs/name")
	}
	var target *path
	v := r.root
	if fragment != "" {
		for _, step := range strings.Split(fragment[1:], "/") {
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(unescaped(step))
			target = target.to(step)
			if v = v.step(step); v == nil {
				return nil, at.fault("it leads nowhere")
			}
		}
	}
	if v.kind != object && v.kind != boolean {
		return nil, at.fault("it leads to no schema")
	}
	return r.node(target, v)
}

func (v *value) step(name string) *value {
	if v.kind == array {
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.items) {
			return v.items[i]
		}
		return nil
	}
	return v.get(name)
}

// unescaped undoes the escapes of a URL.
func unescaped(step string) string {
	if s, err := url.PathUnescape(step); err == nil {
		return s
	}
	return step
}
