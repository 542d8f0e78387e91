package chat

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Bounds on the JSON of clients. The number of digits is Python's own.
const (
	maxJSONBytes = 16 << 20
	maxJSONDepth = 128
	maxDigits    = 4300
)

// reader walks one JSON text, strictly by RFC 8259. Each method begins at the
// reader's place and leaves it behind what it read.
type reader struct {
	in    string
	at    int
	depth int
	// pythonWords admits True, False and None.
	pythonWords bool
}

func (r *reader) fail(what string) error {
	return fmt.Errorf("invalid JSON: %s at byte %d", what, r.at)
}

func (r *reader) space() {
	for r.at < len(r.in) && strings.IndexByte(" \t\r\n", r.in[r.at]) >= 0 {
		r.at++
	}
}

// peek returns the byte at the reader's place, 0 at the end.
func (r *reader) peek() byte {
	if r.at < len(r.in) {
		return r.in[r.at]
	}
	return 0
}

// end checks that only white space is left.
func (r *reader) end() error {
	r.space()
	if r.at < len(r.in) {
		return r.fail("data after the value")
	}
	return nil
}

func (r *reader) enter() error {
	if r.depth++; r.depth > maxJSONDepth {
		return fmt.Errorf("JSON is nested more than %d deep", maxJSONDepth)
	}
	r.at++
	r.space()
	return nil
}

// elements walks an array and calls each at every element.
func (r *reader) elements(each func() error) error {
	return r.list(']', each)
}

// members walks an object and calls each at every value, with its key.
func (r *reader) members(each func(key string) error) error {
	return r.list('}', func() error {
		if r.peek() != '"' {
			return r.fail("no key")
		}
		key, err := r.string()
		if err != nil {
			return err
		}
		if r.space(); r.peek() != ':' {
			return r.fail("no colon after a key")
		}
		r.at++
		r.space()
		return each(key)
	})
}

// list walks an opening bracket, things with commas between, and the closing
// bracket.
func (r *reader) list(closing byte, each func() error) error {
	if err := r.enter(); err != nil {
		return err
	}
	for first := true; r.peek() != closing || !first; first = false {
		if err := each(); err != nil {
			return err
		}
		r.space()
		if r.peek() == closing {
			break
		}
		if r.peek() != ',' {
			return r.fail("no comma or closing bracket")
		}
		r.at++
		r.space()
	}
	r.at++
	r.depth--
	return nil
}

// constant reads true, false or null and returns it.
func (r *reader) constant() (string, error) {
	for _, c := range []struct{ json, python string }{{"true", "True"}, {"false", "False"}, {"null", "None"}} {
		for _, spelling := range []string{c.json, c.python} {
			allowed := r.pythonWords || spelling == c.json
			if allowed && strings.HasPrefix(r.in[r.at:], spelling) {
				r.at += len(spelling)
				return c.json, nil
			}
		}
	}
	return "", r.fail("no value")
}

// number reads a number and returns it as written.
func (r *reader) number() (literal string, float bool, err error) {
	start := r.at
	if r.peek() == '-' {
		r.at++
	}
	whole := r.digits()
	if whole == 0 || whole > 1 && r.in[r.at-whole] == '0' {
		r.at -= whole
		return "", false, r.fail("no number")
	}
	if r.peek() == '.' {
		float = true
		if r.at++; r.digits() == 0 {
			return "", false, r.fail("no digit")
		}
	}
	if r.peek() == 'e' || r.peek() == 'E' {
		float = true
		if r.at++; r.peek() == '+' || r.peek() == '-' {
			r.at++
		}
		if r.digits() == 0 {
			return "", false, r.fail("no digit")
		}
	}
	return r.in[start:r.at], float, nil
}

// digits skips digits and returns how many there were.
func (r *reader) digits() (n int) {
	for ; '0' <= r.peek() && r.peek() <= '9'; r.at++ {
		n++
	}
	return n
}

// string reads a string and returns what it stands for.
func (r *reader) string() (string, error) {
	r.at++
	start := r.at
	var b []byte // what is read, once it differs from the input
	for {
		switch c := r.peek(); {
		case r.at == len(r.in):
			return "", r.fail("no end of the string")
		case c < 0x20:
			return "", r.fail("control character in a string")
		case c == '"':
			s := r.in[start:r.at]
			if b != nil {
				s = string(append(b, s...))
			}
			r.at++
			if !utf8.ValidString(s) {
				return "", errors.New("invalid JSON: a string is not valid UTF-8")
			}
			return s, nil
		case c == '\\':
			b = append(b, r.in[start:r.at]...)
			e, err := r.escape()
			if err != nil {
				return "", err
			}
			b = utf8.AppendRune(b, e)
			start = r.at
		default:
			r.at++
		}
	}
}

// escape reads a backslash and what it escapes.
func (r *reader) escape() (rune, error) {
	r.at++
	c := r.peek()
	if c == 'u' {
		return r.unicode()
	}
	i := strings.IndexByte(`"\/bfnrt`, c)
	if i < 0 || c == 0 {
		return 0, r.fail("unknown escape")
	}
	r.at++
	return rune("\"\\/\b\f\n\r\t"[i]), nil
}

// unicode reads uXXXX, twice where it takes two to make a character.
func (r *reader) unicode() (rune, error) {
	first, err := r.unit()
	if err != nil || !utf16.IsSurrogate(first) {
		return first, err
	}
	if strings.HasPrefix(r.in[r.at:], `\u`) {
		r.at++
		second, err := r.unit()
		if err != nil {
			return 0, err
		}
		if c := utf16.DecodeRune(first, second); c != utf8.RuneError {
			return c, nil
		}
	}
	return 0, r.fail("half of a surrogate pair")
}

func (r *reader) unit() (rune, error) {
	if r.at+5 <= len(r.in) {
		if n, err := strconv.ParseUint(r.in[r.at+1:r.at+5], 16, 16); err == nil {
			r.at += 5
			return rune(n), nil
		}
	}
	return 0, r.fail("no four hexadecimal digits")
}
