package strictjson

import (
	"fmt"
	"unicode/utf8"
)

// Parse returns the one value that data holds. A fault is an *Error.
func Parse(data []byte, limits Limits) (Value, error) {
	p := parser{data: data, limits: limits}
	p.space()
	v, err := p.value(0)
	if err != nil {
		return Value{}, err
	}
	p.space()
	if p.pos < len(p.data) {
		return Value{}, p.fault("bytes after the value")
	}
	return v, nil
}

type parser struct {
	data   []byte
	pos    int
	values int
	limits Limits
}

func (p *parser) fault(format string, args ...any) error {
	return &Error{Offset: p.pos, Fault: fmt.Sprintf(format, args...)}
}

func (p *parser) space() {
	for p.pos < len(p.data) {
		switch p.data[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
		default:
			return
		}
	}
}

// peek returns the next byte, or 0, which no value begins with.
func (p *parser) peek() byte {
	if p.pos < len(p.data) {
		return p.data[p.pos]
	}
	return 0
}

func (p *parser) value(depth int) (Value, error) {
	if p.values++; p.values > p.limits.Values {
		return Value{}, p.fault("more than %d values", p.limits.Values)
	}
	start := p.pos
	v := Value{}
	var err error
	switch c := p.peek(); {
	case c == '{':
		v.Kind = Object
		v.Members, err = p.object(depth + 1)
	case c == '[':
		v.Kind = Array
		v.Items, err = p.array(depth + 1)
	case c == '"':
		v.Kind = String
		err = p.text()
	case c == '-' || '0' <= c && c <= '9':
		v.Kind = Number
		err = p.number()
	case c == 't':
		v.Kind = Bool
		err = p.word("true")
	case c == 'f':
		v.Kind = Bool
		err = p.word("false")
	case c == 'n':
		err = p.word("null")
	case p.pos == len(p.data):
		err = p.fault("end of input, want a value")
	default:
		err = p.fault("want a value")
	}
	v.Raw = p.data[start:p.pos:p.pos]
	return v, err
}

func (p *parser) word(w string) error {
	if len(p.data)-p.pos < len(w) || string(p.data[p.pos:p.pos+len(w)]) != w {
		return p.fault("want a value")
	}
	p.pos += len(w)
	return nil
}

func (p *parser) array(depth int) ([]Value, error) {
	if depth > p.limits.Depth {
		return nil, p.fault("deeper than %d", p.limits.Depth)
	}
	p.pos++
	p.space()
	if p.peek() == ']' {
		p.pos++
		return nil, nil
	}
	var items []Value
	for {
		p.space()
		v, err := p.value(depth)
		if err != nil {
			return nil, err
		}
		items = append(items, v)
		if done, err := p.next(']'); done || err != nil {
			return items, err
		}
	}
}

// next reads what follows a value within an array or object: a comma, or the
// end.
func (p *parser) next(end byte) (done bool, err error) {
	p.space()
	switch p.peek() {
	case ',':
		p.pos++
		return false, nil
	case end:
		p.pos++
		return true, nil
	}
	return false, p.fault("want ',' or '%c'", end)
}

func (p *parser) object(depth int) ([]Member, error) {
	if depth > p.limits.Depth {
		return nil, p.fault("deeper than %d", p.limits.Depth)
	}
	p.pos++
	p.space()
	if p.peek() == '}' {
		p.pos++
		return nil, nil
	}
	var members []Member
	var names nameSet
	for {
		m, err := p.member(depth, &names)
		if err != nil {
			return nil, err
		}
		members = append(members, m)
		if done, err := p.next('}'); done || err != nil {
			return members, err
		}
	}
}

func (p *parser) member(depth int, names *nameSet) (Member, error) {
	p.space()
	start := p.pos
	if p.peek() != '"' {
		return Member{}, p.fault("want a name in quotes")
	}
	if err := p.text(); err != nil {
		return Member{}, err
	}
	name := unquote(p.data[start:p.pos])
	if !names.add(name) {
		p.pos = start
		return Member{}, p.fault("a name that its object has already")
	}
	p.space()
	if p.peek() != ':' {
		return Member{}, p.fault("want ':'")
	}
	p.pos++
	p.space()
	v, err := p.value(depth)
	return Member{name, v}, err
}

// nameSet holds the names of one object: a list while it is short, which most
// stay.
type nameSet struct {
	list []string
	set  map[string]bool
}

const longList = 16

// add reports whether name is new.
func (n *nameSet) add(name string) bool {
	if n.set != nil {
		if n.set[name] {
			return false
		}
		n.set[name] = true
		return true
	}
	for _, have := range n.list {
		if have == name {
			return false
		}
	}
	n.list = append(n.list, name)
	if len(n.list) > longList {
		n.set = make(map[string]bool, 2*longList)
		for _, have := range n.list {
			n.set[have] = true
		}
	}
	return true
}

// number reads -?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?
func (p *parser) number() error {
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
	} else if !p.digits() {
		return p.fault("want a digit")
	}
	if p.peek() == '.' {
		p.pos++
		if !p.digits() {
			return p.fault("want a digit")
		}
	}
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if !p.digits() {
			return p.fault("want a digit")
		}
	}
	return nil
}

func (p *parser) digits() bool {
	start := p.pos
	for c := p.peek(); '0' <= c && c <= '9'; c = p.peek() {
		p.pos++
	}
	return p.pos > start
}

// text reads a string literal and checks all of it.
func (p *parser) text() error {
	p.pos++
	run := p.pos // where the stretch without escapes began
	for p.pos < len(p.data) {
		switch c := p.data[p.pos]; {
		case c == '"':
			if err := p.valid(run); err != nil {
				return err
			}
			p.pos++
			return nil
		case c == '\\':
			if err := p.valid(run); err != nil {
				return err
			}
			if err := p.escape(); err != nil {
				return err
			}
			run = p.pos
		case c < 0x20:
			return p.fault("control character in a string")
		default:
			p.pos++
		}
	}
	return p.fault("end of input within a string")
}

func (p *parser) valid(run int) error {
	if !utf8.Valid(p.data[run:p.pos]) {
		p.pos = run
		return p.fault("invalid UTF-8")
	}
	return nil
}

func (p *parser) escape() error {
	p.pos++
	switch p.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.pos++
		return nil
	case 'u':
		return p.unicode()
	}
	return p.fault("unknown escape")
}

// unicode reads the u of an escape and what belongs to it: a high surrogate
// needs its low one, and there is no low one alone.
func (p *parser) unicode() error {
	high, err := p.hex()
	if err != nil {
		return err
	}
	switch {
	case 0xDC00 <= high && high < 0xE000:
		return p.fault("lone surrogate")
	case high < 0xD800 || high >= 0xE000:
		return nil
	}
	if p.peek() != '\\' {
		return p.fault("lone surrogate")
	}
	p.pos++
	if p.peek() != 'u' {
		return p.fault("lone surrogate")
	}
	low, err := p.hex()
	if err != nil {
		return err
	}
	if low < 0xDC00 || low >= 0xE000 {
		return p.fault("lone surrogate")
	}
	return nil
}

// hex reads u and four hexadecimal digits.
func (p *parser) hex() (rune, error) {
	p.pos++
	var r rune
	for range 4 {
		c := p.peek()
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, p.fault("want four hexadecimal digits")
		}
		p.pos++
	}
	return r, nil
}
