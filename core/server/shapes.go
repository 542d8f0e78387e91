package server

import (
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"calla/core/server/strictjson"
)

// shape is what a value of a request must be. Shapes check; encoding/json
// fills the wire types in afterwards, from a document that holds nothing but
// what the shapes know.
type shape interface {
	// takes reports whether the shape is for values of kind k.
	takes(k strictjson.Kind) bool
	// check returns the first fault of v, which stands at p and is of a kind
	// that the shape takes.
	check(p *place, v strictjson.Value) *apiError
	// says names the shape in the table.
	says() string
}

// place is where a value stands in a document.
type place struct {
	up    *place
	name  string
	index int // of an array, where name is empty
}

func (p *place) member(name string) *place { return &place{up: p, name: name} }
func (p *place) item(i int) *place         { return &place{up: p, index: i} }

func (p *place) String() string {
	if p == nil {
		return ""
	}
	up := p.up.String()
	switch {
	case p.name == "":
		return up + "[" + strconv.Itoa(p.index) + "]"
	case up == "":
		return p.name
	}
	return up + "." + p.name
}

// checkShape checks v against s, its kind first.
func checkShape(s shape, p *place, v strictjson.Value) *apiError {
	if !s.takes(v.Kind) {
		return badField(codeType, p.String(), "%s is of type %s, want %s", nameOf(p), v.Kind, s.says())
	}
	return s.check(p, v)
}

// nameOf returns p for a message.
func nameOf(p *place) string {
	if p == nil {
		return "the body"
	}
	return p.String()
}

// text is a string of min to max bytes; max 0 is no bound.
type text struct{ min, max int }

func (t text) takes(k strictjson.Kind) bool { return k == strictjson.String }

func (t text) check(p *place, v strictjson.Value) *apiError {
	switch n := len(v.Text()); {
	case n < t.min:
		return badField(codeValue, p.String(), "%s is empty", nameOf(p))
	case t.max > 0 && n > t.max:
		return badField(codeValue, p.String(), "%s has %d bytes, want at most %d", nameOf(p), n, t.max)
	}
	return nil
}

func (t text) says() string {
	if t.max > 0 {
		return "string, at most " + strconv.Itoa(t.max) + " bytes"
	}
	return "string"
}

// identifier is a name as functions have them.
type identifier struct{}

const maxIdentifier = 128

func (identifier) takes(k strictjson.Kind) bool { return k == strictjson.String }

func (identifier) check(p *place, v strictjson.Value) *apiError {
	name := v.Text()
	bad := func(r rune) bool {
		return r > unicode.MaxASCII || r != '_' && r != '-' && r != '.' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	}
	if name == "" || len(name) > maxIdentifier || strings.ContainsFunc(name, bad) {
		return badField(codeValue, p.String(), "%s must be %s", nameOf(p), identifier{}.says())
	}
	return nil
}

func (identifier) says() string { return "string of 1–128 of a–z A–Z 0–9 _ - ." }

// oneOf is one of some strings.
type oneOf []string

func (o oneOf) takes(k strictjson.Kind) bool { return k == strictjson.String }

func (o oneOf) check(p *place, v strictjson.Value) *apiError {
	got := v.Text()
	for _, want := range o {
		if got == want {
			return nil
		}
	}
	return badField(codeValue, p.String(), "%s must be %s", nameOf(p), o.says())
}

func (o oneOf) says() string { return `"` + strings.Join(o, `", "`) + `"` }

// only is a field of which some values ask for what happens anyway; the others
// are refused. Values are JSON on one line.
type only []string

func (o only) takes(strictjson.Kind) bool { return true }

func (o only) check(p *place, v strictjson.Value) *apiError {
	for _, want := range o {
		if string(v.Raw) == want || v.Kind == strictjson.String && strconv.Quote(v.Text()) == want || compact(v) == want {
			return nil
		}
	}
	return badField(codeUnsupValue, p.String(), "%s: this value is not supported here, only %s", nameOf(p), o.says())
}

func (o only) says() string { return strings.Join(o, ", ") }

// compact returns a short array or object without white space, "" for others.
func compact(v strictjson.Value) string {
	if v.Kind != strictjson.Array && v.Kind != strictjson.Object || len(v.Raw) > 100 {
		return ""
	}
	return string(compactJSON(v.Raw))
}

// boolean is true or false.
type boolean struct{}

func (boolean) takes(k strictjson.Kind) bool             { return k == strictjson.Bool }
func (boolean) check(*place, strictjson.Value) *apiError { return nil }
func (boolean) says() string                             { return "boolean" }

// integer is a whole number from min to max, written without point or exponent.
type integer struct{ min, max int64 }

func (n integer) takes(k strictjson.Kind) bool { return k == strictjson.Number }

func (n integer) check(p *place, v strictjson.Value) *apiError {
	if strings.ContainsAny(string(v.Raw), ".eE") {
		return badField(codeType, p.String(), "%s is a number with a point or exponent, want %s", nameOf(p), n.says())
	}
	i, err := strconv.ParseInt(string(v.Raw), 10, 64)
	if err != nil || i < n.min || i > n.max {
		return badField(codeValue, p.String(), "%s is out of range, want %s", nameOf(p), n.says())
	}
	return nil
}

func (n integer) says() string {
	switch {
	case n.min == math.MinInt64 && n.max == math.MaxInt64:
		return "integer of 64 bits"
	case n.max == math.MaxInt32:
		return "integer ≥ " + strconv.FormatInt(n.min, 10)
	}
	return "integer " + strconv.FormatInt(n.min, 10) + "–" + strconv.FormatInt(n.max, 10)
}

// number is a real number from min to max.
type number struct{ min, max float64 }

func (n number) takes(k strictjson.Kind) bool { return k == strictjson.Number }

func (n number) check(p *place, v strictjson.Value) *apiError {
	x, err := strconv.ParseFloat(string(v.Raw), 64)
	if err != nil || x < n.min || x > n.max {
		return badField(codeValue, p.String(), "%s is out of range, want %s", nameOf(p), n.says())
	}
	return nil
}

func (n number) says() string {
	format := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	return "number " + format(n.min) + "–" + format(n.max)
}

// list is an array of min to max items; max 0 is no bound.
type list struct {
	of       shape
	min, max int
}

func (l list) takes(k strictjson.Kind) bool { return k == strictjson.Array }

func (l list) check(p *place, v strictjson.Value) *apiError {
	switch n := len(v.Items); {
	case n < l.min:
		return badField(codeValue, p.String(), "%s has %d items, want at least %d", nameOf(p), n, l.min)
	case l.max > 0 && n > l.max:
		return badField(codeValue, p.String(), "%s has %d items, want at most %d", nameOf(p), n, l.max)
	}
	for i, item := range v.Items {
		if err := checkShape(l.of, p.item(i), item); err != nil {
			return err
		}
	}
	return nil
}

func (l list) says() string {
	s := "array"
	if l.max > 0 {
		s += " of up to " + strconv.Itoa(l.max)
	}
	switch l.of.(type) {
	case object, tagged:
		return s
	}
	return s + " of " + l.of.says()
}

// either is a value of one of some shapes, told apart by kind.
type either []shape

func (e either) takes(k strictjson.Kind) bool { return e.of(k) != nil }

func (e either) check(p *place, v strictjson.Value) *apiError { return e.of(v.Kind).check(p, v) }

func (e either) of(k strictjson.Kind) shape {
	for _, s := range e {
		if s.takes(k) {
			return s
		}
	}
	return nil
}

func (e either) says() string {
	names := make([]string, len(e))
	for i, s := range e {
		names[i] = s.says()
	}
	return strings.Join(names, " or ")
}

// free is an object whose names are the client's own. Its faults name the
// object, not the name within it.
type free struct {
	of  shape // nil: anything
	max int   // entries; 0 is no bound
	// name reports whether a name is one that the object may have; nil takes all.
	name func(string) bool
	note string
}

func (f free) takes(k strictjson.Kind) bool { return k == strictjson.Object }

func (f free) check(p *place, v strictjson.Value) *apiError {
	if f.max > 0 && len(v.Members) > f.max {
		return badField(codeValue, p.String(), "%s has %d entries, want at most %d", nameOf(p), len(v.Members), f.max)
	}
	for _, m := range v.Members {
		if f.name != nil && !f.name(m.Name) {
			return badField(codeValue, p.String(), "%s has a name that is not one of %s", nameOf(p), f.says())
		}
		if f.of == nil {
			continue
		}
		if err := checkShape(f.of, p, m.Value); err != nil {
			return err
		}
	}
	return nil
}

func (f free) says() string {
	if f.note != "" {
		return f.note
	}
	return "object"
}

// shortName makes a name from a document fit for a message.
func shortName(name string) string {
	name = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '�'
	}, name)
	for len(name) > 64 {
		_, size := utf8.DecodeLastRuneInString(name)
		name = name[:len(name)-size]
	}
	return name
}
