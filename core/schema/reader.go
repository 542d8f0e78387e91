package schema

import (
	"errors"
	"math/big"
	"net/url"
	"slices"
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

// rational reads a number, unless its exponent makes it unreasonable.
func rational(literal string) (*big.Rat, bool) {
	if len(literal) > 200 {
		return nil, false
	}
	if i := strings.IndexAny(literal, "eE"); i >= 0 {
		if e, err := strconv.Atoi(literal[i+1:]); err != nil || e < -60 || e > 60 {
			return nil, false
		}
	}
	return new(big.Rat).SetString(literal)
}

// count reads a keyword whose value is a number of things.
func count(n *node, v *value, name string, absent, most int) (int, *Error) {
	c := v.get(name)
	if c == nil {
		return absent, nil
	}
	r, ok := rational(c.literal)
	if !ok || r.Cmp(big.NewRat(int64(most), 1)) > 0 {
		return 0, n.at.to(name).fault("at most %d is supported", most)
	}
	return int(r.Num().Int64()), nil
}

func (r *reader) strings(n *node, v *value) *Error {
	s := &n.strings
	var err *Error
	if s.min, err = count(n, v, "minLength", 0, maxLength); err != nil {
		return err
	}
	if s.max, err = count(n, v, "maxLength", -1, maxLength); err != nil {
		return err
	}
	if n.kinds&text == 0 {
		return nil
	}
	if s.max >= 0 && s.max < s.min {
		n.kinds &^= text
		return nil
	}
	for _, name := range []string{"pattern", "format"} {
		if err := r.restrict(n, v, name); err != nil {
			return err
		}
	}
	if s.set == nil || s.min == 0 && s.max < 0 {
		return nil
	}
	name := "maxLength"
	if s.max < 0 {
		name = "minLength"
	}
	length, e := r.maker.Length(s.min, s.max)
	if e == nil {
		s.set, e = r.maker.Intersect(s.set, length)
	}
	return settled(n, name, e)
}

// restrict takes a pattern or a format into the set of strings.
func (r *reader) restrict(n *node, v *value, name string) *Error {
	k := v.get(name)
	if k == nil || n.kinds&text == 0 {
		return nil
	}
	p := k.text
	if name == "format" {
		known, ok := formats[p]
		if !ok {
			return n.at.to(name).fault("this format is not supported; those that are: %s", strings.Join(Formats(), ", "))
		}
		p = known
	}
	set, err := r.maker.Pattern(p)
	if err == nil && n.strings.set != nil {
		set, err = r.maker.Intersect(n.strings.set, set)
	}
	n.strings.set = set
	return settled(n, name, err)
}

// settled takes strings away where there are none, and makes other errors of
// automata ours.
func settled(n *node, name string, err error) *Error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, dfa.ErrEmpty):
		n.kinds &^= text
		return nil
	case errors.Is(err, dfa.ErrTooLarge):
		return n.at.to(name).fault("it is too large or too laborious")
	}
	return n.at.to(name).fault("%v", err)
}

func (r *reader) numbers(n *node, v *value) *Error {
	for _, k := range []struct {
		name string
		to   **dfa.Bound
		low  bool
		out  bool
	}{
		{"minimum", &n.numbers.low, true, false}, {"exclusiveMinimum", &n.numbers.low, true, true},
		{"maximum", &n.numbers.high, false, false}, {"exclusiveMaximum", &n.numbers.high, false, true},
	} {
		m := v.get(k.name)
		if m == nil {
			continue
		}
		x, ok := rational(m.literal)
		if !ok {
			return n.at.to(k.name).fault("want a number of a reasonable length")
		}
		b := &dfa.Bound{Digits: decimal(x), Excluded: k.out}
		if old := *k.to; old != nil {
			y, _ := rational(old.Digits)
			if c := x.Cmp(y); k.low && c < 0 || !k.low && c > 0 {
				continue // the other one is stricter
			}
		}
		*k.to = b
	}
	return nil
}

// decimal writes a number that was read from one without its exponent.
func decimal(x *big.Rat) string {
	prec, _ := x.FloatPrec()
	return x.FloatString(prec)
}

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

// unescaped undoes the escapes of a URL.
func unescaped(step string) string {
	if s, err := url.PathUnescape(step); err == nil {
		return s
	}
	return step
}
