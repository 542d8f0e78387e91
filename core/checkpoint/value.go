package checkpoint

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may nest. A config.json has four
// levels.
const maxDepth = 32

// value is the text of one JSON value that parseJSON has checked: a part of the
// document, read again whenever it is asked. So a document takes no memory
// beside its text, however it is made.
type value string

// parseJSON checks a whole document: its grammar, its depth, and that no object
// has a name twice.
func parseJSON(text string) (value, error) {
	s := scanner{text: text}
	v, err := s.value(maxDepth, true)
	if err != nil {
		return "", err
	}
	return v, s.end()
}

// value takes any value. With unique it refuses objects that have a name twice,
// and depth is how many more levels it may have.
func (s *scanner) value(depth int, unique bool) (value, error) {
	c := s.peek()
	start := s.pos
	var err error
	switch {
	case c == '{' || c == '[':
		if depth == 0 {
			return "", s.errorf("deeper than %d levels", maxDepth)
		}
		if c == '{' {
			err = s.object(depth-1, unique)
		} else {
			err = s.array(depth-1, unique)
		}
	case c == '"':
		_, err = s.str()
	case c == '-' || '0' <= c && c <= '9':
		_, err = s.number()
	default:
		err = s.literal()
	}
	return value(s.text[start:s.pos]), err
}

func (s *scanner) object(depth int, unique bool) error {
	var names []string
	err := s.members(func(name string) error {
		if unique {
			names = append(names, name)
		}
		_, err := s.value(depth, unique)
		return err
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	for i := 1; i < len(names); i++ {
		if names[i] == names[i-1] {
			return fmt.Errorf("%s is there twice in one object", quote(names[i]))
		}
	}
	return nil
}

func (s *scanner) array(depth int, unique bool) error {
	return s.elements(func() error {
		_, err := s.value(depth, unique)
		return err
	})
}

// errStop ends a walk over a value that has been checked; nobody sees it.
var errStop = errors.New("stop")

// members yields the members of an object; of anything else none.
func (v value) members() iter.Seq2[string, value] {
	return func(yield func(string, value) bool) {
		s := scanner{text: string(v)}
		s.members(func(name string) error {
			if m, _ := s.value(maxDepth, false); !yield(name, m) {
				return errStop
			}
			return nil
		})
	}
}

// items yields the elements of an array; of anything else none.
func (v value) items() iter.Seq[value] {
	return func(yield func(value) bool) {
		s := scanner{text: string(v)}
		s.elements(func() error {
			if m, _ := s.value(maxDepth, false); !yield(m) {
				return errStop
			}
			return nil
		})
	}
}

// get returns the member of an object, and false where it has none or is no
// object.
func (v value) get(name string) (value, bool) {
	for k, m := range v.members() {
		if k == name {
			return m, true
		}
	}
	return "", false
}

func (v value) isObject() bool { return v != "" && v[0] == '{' }
func (v value) isArray() bool  { return v != "" && v[0] == '[' }
func (v value) isNull() bool   { return v == "null" }

// text returns a string, and false for anything else.
func (v value) text() (string, bool) {
	if v == "" || v[0] != '"' {
		return "", false
	}
	s := scanner{text: string(v)}
	t, err := s.str()
	return t, err == nil
}

// integer returns a number that is written as an integer.
func (v value) integer() (int, bool) {
	n, err := strconv.Atoi(string(v))
	return n, err == nil
}

// number returns a finite number.
func (v value) number() (float64, bool) {
	if v == "" || v[0] != '-' && (v[0] < '0' || v[0] > '9') {
		return 0, false
	}
	x, err := strconv.ParseFloat(string(v), 64)
	return x, err == nil
}

// boolean returns true or false, and whether it was one of them.
func (v value) boolean() (is, ok bool) { return v == "true", v == "true" || v == "false" }

// compact returns the text of a value that is no string without white space.
func (v value) compact() string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' {
			return -1
		}
		return r
	}, string(v))
}

// String shows the value in messages, cut to a line's length.
func (v value) String() string {
	const most = 60
	if v == "" {
		return "missing"
	}
	if len(v) <= most {
		return string(v)
	}
	return shorten(string(v), most) + "..."
}

// quote shows a name from a file in messages: quoted, at most a line long.
func quote(name string) string {
	const most = 120
	if len(name) <= most {
		return strconv.Quote(name)
	}
	return strconv.Quote(shorten(name, most)) + "..."
}

// shorten cuts s to at most n bytes, between characters.
func shorten(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
