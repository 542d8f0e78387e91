package checkpoint

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads JSON (RFC 8259) strictly: UTF-8 only, no lone surrogates, no
// number that JSON does not allow. It allocates only to decode a
// string that has escapes. Its errors name the byte.
type scanner struct {
	text string
	pos  int
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: "+format, append([]any{s.pos}, args...)...)
}

// peek returns the byte after white space without taking it, and 0 at the end.
func (s *scanner) peek() byte {
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// expect takes the byte c after white space.
func (s *scanner) expect(c byte) error {
	if got := s.peek(); got != c || s.pos == len(s.text) {
		return s.errorf("%s, want %q", s.found(), c)
	}
	s.pos++
	return nil
}

// found names what lies at the position, for messages.
func (s *scanner) found() string {
	if s.pos >= len(s.text) {
		return "the end"
	}
	return strconv.QuoteToASCII(s.text[s.pos : s.pos+1])
}

// more reports whether another element follows in an object or array that
// close ends, and takes the comma or the close. The first element has no comma.
func (s *scanner) more(close byte, first bool) (bool, error) {
	switch c := s.peek(); {
	case s.pos == len(s.text):
	case c == close:
		s.pos++
		return false, nil
	case first:
		return true, nil
	case c == ',':
		s.pos++
		if s.peek() == close {
			return false, s.errorf("a comma before %q", close)
		}
		return true, nil
	}
	return false, s.errorf("%s, want ',' or %q", s.found(), close)
}

// members takes an object. It calls visit after each name and colon; visit must
// take the value.
func (s *scanner) members(visit func(name string) error) error {
	if err := s.expect('{'); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.more('}', first)
		if err != nil || !more {
			return err
		}
		name, err := s.str()
		if err != nil {
			return err
		}
		if err := s.expect(':'); err != nil {
			return err
		}
		if err := visit(name); err != nil {
			return err
		}
	}
}

// elements takes an array. It calls visit before each element; visit must take
// it.
func (s *scanner) elements(visit func() error) error {
	if err := s.expect('['); err != nil {
		return err
	}
	for first := true; ; first = false {
		more, err := s.more(']', first)
		if err != nil || !more {
			return err
		}
		if err := visit(); err != nil {
			return err
		}
	}
}

// str takes a string and returns it decoded. Without escapes the result shares
// the memory of the text.
func (s *scanner) str() (string, error) {
	if err := s.expect('"'); err != nil {
		return "", err
	}
	start := s.pos
	for ; s.pos < len(s.text); s.pos++ {
		switch c := s.text[s.pos]; {
		case c == '"':
			s.pos++
			return s.text[start : s.pos-1], s.validUTF8(start)
		case c == '\\':
			return s.unescape(start)
		case c < ' ':
			return "", s.errorf("a control character in a string")
		}
	}
	return "", s.errorf("a string without an end")
}

// validUTF8 checks the string that began at start and has just been taken.
func (s *scanner) validUTF8(start int) error {
	if !utf8.ValidString(s.text[start:s.pos]) {
		s.pos = start
		return s.errorf("a string that is not UTF-8")
	}
	return nil
}

// unescape takes the rest of the string that began at start; the position is at
// its first backslash.
func (s *scanner) unescape(start int) (string, error) {
	end := s.stringEnd()
	if end < 0 {
		return "", s.errorf("a string without an end")
	}
	var b strings.Builder
	b.Grow(end - start) // an escape is never shorter than what it stands for
	b.WriteString(s.text[start:s.pos])
	for s.pos < end {
		switch c := s.text[s.pos]; {
		case c == '\\':
			r, err := s.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		case c < ' ':
			return "", s.errorf("a control character in a string")
		default:
			b.WriteByte(c)
			s.pos++
		}
	}
	s.pos = end + 1
	return b.String(), s.validUTF8(start)
}

// stringEnd returns the index of the quote that ends the current string, and -1
// where none does.
func (s *scanner) stringEnd() int {
	for i := s.pos; i < len(s.text); i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			return i
		}
	}
	return -1
}

// escape takes one escape, a surrogate pair as one.
func (s *scanner) escape() (rune, error) {
	const escapes, means = `"\/bfnrt`, "\"\\/\b\f\n\r\t"
	if i := strings.IndexByte(escapes, s.text[s.pos+1]); i >= 0 {
		s.pos += 2
		return rune(means[i]), nil
	}
	r, ok := s.unicodeEscape()
	if !ok {
		return 0, s.errorf("an unknown escape")
	}
	if !utf16.IsSurrogate(r) {
		s.pos += 6
		return r, nil
	}
	s.pos += 6
	low, ok := s.unicodeEscape()
	pair := utf16.DecodeRune(r, low)
	if !ok || pair == utf8.RuneError {
		s.pos -= 6
		return 0, s.errorf("half a surrogate pair")
	}
	s.pos += 6
	return pair, nil
}

// unicodeEscape reads \uXXXX at the position without taking it.
func (s *scanner) unicodeEscape() (rune, bool) {
	rest := s.text[s.pos:]
	if len(rest) < 6 || rest[:2] != `\u` {
		return 0, false
	}
	var r rune
	for _, c := range []byte(rest[2:6]) {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return 0, false
		}
	}
	return r, true
}

// number takes a number and returns its text.
func (s *scanner) number() (string, error) {
	s.peek()
	start := s.pos
	s.take("-")
	if !s.take("0") && !s.digits() {
		return "", s.errorf("%s, want a number", s.found())
	}
	if s.take(".") && !s.digits() {
		return "", s.errorf("%s, want a digit after the point", s.found())
	}
	if s.take("eE") {
		s.take("+-")
		if !s.digits() {
			return "", s.errorf("%s, want a digit of the exponent", s.found())
		}
	}
	return s.text[start:s.pos], nil
}

// take takes one byte that is in set.
func (s *scanner) take(set string) bool {
	if s.pos == len(s.text) || strings.IndexByte(set, s.text[s.pos]) < 0 {
		return false
	}
	s.pos++
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for s.take("0123456789") {
	}
	return s.pos > start
}

// literal takes true, false or null.
func (s *scanner) literal() error {
	for _, word := range [...]string{"true", "false", "null"} {
		if strings.HasPrefix(s.text[s.pos:], word) {
			s.pos += len(word)
			return nil
		}
	}
	return s.errorf("%s, want a value", s.found())
}

// end checks that nothing but white space is left.
func (s *scanner) end() error {
	if s.peek(); s.pos < len(s.text) {
		return s.errorf("%s after the end of the JSON", s.found())
	}
	return nil
}
