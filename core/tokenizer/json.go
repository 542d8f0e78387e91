package tokenizer

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// maxDepth bounds how deep the values of a file may be nested.
const maxDepth = 64

// jsonReader reads one JSON text from front to back, strictly as RFC 8259 has
// it, and refuses text that is not UTF-8. A tokenizer.json holds a million
// strings of a few bytes; encoding/json would allocate each of them.
type jsonReader struct {
	data    []byte
	pos     int
	depth   int
	scratch []byte // holds the newest string that had escapes
}

// peek returns the next byte that is not white space, 0 at the end.
func (r *jsonReader) peek() byte {
	for ; r.pos < len(r.data); r.pos++ {
		switch c := r.data[r.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// unexpected is the error for what stands at the next byte.
func (r *jsonReader) unexpected(want string) error {
	r.peek()
	if r.pos >= len(r.data) {
		return fmt.Errorf("byte %d: end of file, want %s", r.pos, want)
	}
	return fmt.Errorf("byte %d: %q, want %s", r.pos, r.data[r.pos:r.pos+1], want)
}

// object reads an object and calls member with each key, to read the value. The
// key is valid until the next string is read.
func (r *jsonReader) object(member func(key []byte) error) error {
	return r.list('{', '}', func(int) error {
		key, err := r.str()
		if err != nil {
			return err
		}
		if r.peek() != ':' {
			return r.unexpected("a colon")
		}
		r.pos++
		return member(key)
	})
}

// members reads a small object and calls member with each name, which must not
// come twice.
func (r *jsonReader) members(member func(name string) error) error {
	seen := map[string]bool{}
	return r.object(func(key []byte) error {
		name := string(key)
		if seen[name] {
			return fmt.Errorf("%s: given again, want it once", quote(name))
		}
		seen[name] = true
		return member(name)
	})
}

// array reads an array and calls element with each index, to read the element.
func (r *jsonReader) array(element func(i int) error) error {
	return r.list('[', ']', element)
}

func (r *jsonReader) list(open, end byte, item func(i int) error) error {
	if r.peek() != open {
		return r.unexpected(string(open))
	}
	r.pos++
	if r.depth++; r.depth > maxDepth {
		return fmt.Errorf("byte %d: %d levels of nesting, want at most %d", r.pos-1, r.depth, maxDepth)
	}
	for i := 0; i > 0 || r.peek() != end; i++ {
		if err := item(i); err != nil {
			return err
		}
		if r.peek() == end {
			break
		}
		if r.peek() != ',' {
			return r.unexpected("a comma or " + string(end))
		}
		r.pos++
	}
	r.pos++
	r.depth--
	return nil
}

// str reads a string. The result is valid until the next string is read.
func (r *jsonReader) str() ([]byte, error) {
	if r.peek() != '"' {
		return nil, r.unexpected("a string")
	}
	start := r.pos + 1
	r.scratch = r.scratch[:0]
	for i := start; i < len(r.data); i++ {
		switch c := r.data[i]; {
		case c == '"':
			text := r.data[start:i]
			if len(r.scratch) > 0 {
				r.scratch = append(r.scratch, text...)
				text = r.scratch
			}
			if !utf8.Valid(text) {
				return nil, fmt.Errorf("byte %d: a string that is not UTF-8", r.pos)
			}
			r.pos = i + 1
			return text, nil
		case c < ' ':
			return nil, fmt.Errorf("byte %d: control character %q in a string, want an escape", i, c)
		case c == '\\':
			r.scratch = append(r.scratch, r.data[start:i]...)
			n, err := r.escape(i)
			if err != nil {
				return nil, err
			}
			start = i + n
			i = start - 1
		}
	}
	return nil, fmt.Errorf("byte %d: a string without end", r.pos)
}

// escape appends what the escape at byte i stands for to scratch and returns
// the escape's length.
func (r *jsonReader) escape(i int) (int, error) {
	text := r.data[i:]
	if len(text) > 1 {
		if at := bytes.IndexByte([]byte(`"\/bfnrt`), text[1]); at >= 0 {
			r.scratch = append(r.scratch, "\"\\/\b\f\n\r\t"[at])
			return 2, nil
		}
	}
	unit, ok := escapedUnit(text)
	if !ok {
		return 0, fmt.Errorf("byte %d: an unknown escape", i)
	}
	if !utf16.IsSurrogate(unit) {
		r.scratch = utf8.AppendRune(r.scratch, unit)
		return 6, nil
	}
	low, _ := escapedUnit(text[6:])
	both := utf16.DecodeRune(unit, low)
	if both == utf8.RuneError {
		return 0, fmt.Errorf("byte %d: half a surrogate pair", i)
	}
	r.scratch = utf8.AppendRune(r.scratch, both)
	return 12, nil
}

// escapedUnit returns the UTF-16 code unit that \uXXXX at the start of text is.
func escapedUnit(text []byte) (rune, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	var unit rune
	for _, c := range text[2:6] {
		digit := bytes.IndexByte([]byte("0123456789abcdef"), c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		unit = unit<<4 | rune(digit)
	}
	return unit, true
}

// id reads a token id: a whole number from 0 on.
func (r *jsonReader) id() (int32, error) {
	text := r.word()
	id, err := parseID(text)
	if err != nil {
		return 0, fmt.Errorf("byte %d: %w", r.pos-len(text), err)
	}
	return id, nil
}

func parseID(text []byte) (int32, error) {
	id, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil || text[0] == '0' && len(text) > 1 {
		return 0, fmt.Errorf("%s, want a token id from 0 to %d", quote(text), math.MaxInt32)
	}
	return int32(id), nil
}

// word reads the characters of a number, true, false or null.
func (r *jsonReader) word() []byte {
	r.peek()
	start := r.pos
	for r.pos < len(r.data) && strings.IndexByte(" \t\n\r,:[]{}\"", r.data[r.pos]) < 0 {
		r.pos++
	}
	return r.data[start:r.pos]
}

// scalar reads a value that holds no others and returns it in one spelling of
// JSON: strings between quotes but without escapes.
func (r *jsonReader) scalar() (string, error) {
	if r.peek() == '"' {
		text, err := r.str()
		return `"` + string(text) + `"`, err
	}
	text := r.word()
	if !json.Valid(text) {
		return "", fmt.Errorf("byte %d: %s, want a value", r.pos-len(text), quote(text))
	}
	return string(text), nil
}

// boolean reads true or false.
func (r *jsonReader) boolean() (bool, error) {
	switch text := r.word(); string(text) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	default:
		return false, fmt.Errorf("byte %d: %s, want true or false", r.pos-len(text), quote(text))
	}
}

// skip reads any value and returns its bytes.
func (r *jsonReader) skip() ([]byte, error) {
	c := r.peek()
	start := r.pos
	var err error
	switch c {
	case '{':
		err = r.object(func([]byte) error { _, err := r.skip(); return err })
	case '[':
		err = r.array(func(int) error { _, err := r.skip(); return err })
	default:
		_, err = r.scalar()
	}
	return r.data[start:r.pos], err
}

// end checks that nothing follows.
func (r *jsonReader) end() error {
	if r.peek(); r.pos < len(r.data) {
		return r.unexpected("the end of the file")
	}
	return nil
}
