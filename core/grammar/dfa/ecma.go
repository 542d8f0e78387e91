package dfa

import (
	"fmt"
	"strconv"
	"strings"
)

// What ECMAScript means by white space and by the end of a line.
const (
	ecmaSpace    = `\t-\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}`
	ecmaNotSpace = `\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027}\x{202a}-\x{202e}` +
		`\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff}`
	ecmaDot = `[^\n\r\x{2028}\x{2029}]`
)

// translate writes a pattern of ECMAScript as one of Go that means the same.
func translate(pattern string) (string, error) {
	t := translator{rest: pattern}
	for t.rest != "" {
		if err := t.next(); err != nil {
			return "", err
		}
	}
	return t.out.String(), nil
}

type translator struct {
	rest    string
	out     strings.Builder
	inClass bool
}

// next translates one item of the pattern.
func (t *translator) next() error {
	c := t.rest[0]
	switch {
	case c == '\\':
		return t.escape()
	case t.inClass:
		t.class(c)
		return nil
	case c == '.':
		t.replace(1, ecmaDot)
		return nil
	case strings.HasPrefix(t.rest, "(?"):
		return t.group()
	case c == '[':
		return t.openClass()
	case c == '*' || c == '+' || c == '?' || c == '{' || c == '}':
		return t.repetition(c)
	}
	t.keep(1)
	return nil
}

func (t *translator) keep(n int) {
	t.out.WriteString(t.rest[:n])
	t.rest = t.rest[n:]
}

func (t *translator) replace(n int, with string) {
	t.out.WriteString(with)
	t.rest = t.rest[n:]
}

func (t *translator) class(c byte) {
	switch c {
	case ']':
		t.inClass = false
	case '[', '&', '~':
		t.out.WriteByte('\\') // Go knows names of classes within a class
	}
	t.keep(1)
}

func (t *translator) openClass() error {
	n := 1
	if strings.HasPrefix(t.rest, "[^") {
		n = 2
	}
	if strings.HasPrefix(t.rest[n:], "]") {
		return fmt.Errorf("an empty class of characters is not supported")
	}
	t.inClass = true
	t.keep(n)
	return nil
}

func (t *translator) group() error {
	switch {
	case strings.HasPrefix(t.rest, "(?:"):
		t.keep(3)
	case strings.HasPrefix(t.rest, "(?<") && len(t.rest) > 3 && t.rest[3] != '=' && t.rest[3] != '!':
		end := strings.IndexByte(t.rest, '>')
		if end < 0 {
			return fmt.Errorf("a group's name has no end")
		}
		t.replace(end+1, "(?:")
	default:
		return fmt.Errorf("look-around and flags in the middle are not supported")
	}
	return nil
}

// repetition keeps what repeats. Which of several matches is found first makes
// no difference, so a lazy one is like any other. In Unicode mode a brace that
// repeats nothing is a fault, which Go would take for itself.
func (t *translator) repetition(c byte) error {
	n := 1
	if c == '{' {
		end := strings.IndexByte(t.rest, '}')
		if end < 0 || !isCount(t.rest[1:end]) {
			return fmt.Errorf("a brace that counts nothing is not supported: write \\{")
		}
		n = end + 1
	}
	if c == '}' {
		return fmt.Errorf("a brace that counts nothing is not supported: write \\}")
	}
	t.keep(n)
	return nil
}

func isCount(s string) bool {
	low, high, _ := strings.Cut(s, ",")
	return low != "" && strings.Trim(low, "0123456789") == "" && strings.Trim(high, "0123456789") == ""
}

// escape translates a backslash and what belongs to it.
func (t *translator) escape() error {
	if len(t.rest) < 2 {
		return fmt.Errorf("a backslash at the end")
	}
	switch c := t.rest[1]; {
	case c == 's':
		t.set(ecmaSpace)
	case c == 'S':
		t.set(ecmaNotSpace)
	case strings.IndexByte("dDwWtnvfr", c) >= 0:
		t.keep(2)
	case c == 'b' && t.inClass:
		t.replace(2, `\x08`)
	case c == 'u' || c == 'x':
		return t.codePoint(c)
	case c == 'p' || c == 'P':
		return t.property()
	case c == '0' && (len(t.rest) < 3 || t.rest[2] < '0' || t.rest[2] > '9'):
		t.replace(2, `\x00`)
	case c < 0x80 && !isWordByte(c):
		t.keep(2)
	default:
		return fmt.Errorf("\\%c is not supported", c)
	}
	return nil
}

func isWordByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'z'
}

// set writes a set of characters, within a class or as one.
func (t *translator) set(members string) {
	if !t.inClass {
		members = "[" + members + "]"
	}
	t.replace(2, members)
}

// codePoint translates \xHH, \uHHHH, a pair of those, and \u{H}.
func (t *translator) codePoint(kind byte) error {
	if kind == 'u' && strings.HasPrefix(t.rest, `\u{`) {
		end := strings.IndexByte(t.rest, '}')
		if end < 0 {
			return fmt.Errorf("\\u{ has no end")
		}
		return t.code(t.rest[3:end], end+1)
	}
	n := 4
	if kind == 'x' {
		n = 2
	}
	if len(t.rest) < 2+n {
		return fmt.Errorf("\\%c wants %d hexadecimal digits", kind, n)
	}
	return t.code(t.rest[2:2+n], 2+n)
}

func (t *translator) code(digits string, length int) error {
	r, err := strconv.ParseUint(digits, 16, 32)
	if err != nil || r > 0x10ffff {
		return fmt.Errorf("%q is no code point", digits)
	}
	if r >= 0xd800 && r <= 0xdfff {
		return fmt.Errorf("surrogates are not supported: write \\u{...}")
	}
	t.replace(length, fmt.Sprintf(`\x{%x}`, r))
	return nil
}

// property translates \p{L}, \p{Lu}, \p{Script=Greek} and \p{Letter}'s like.
func (t *translator) property() error {
	end := strings.IndexByte(t.rest, '}')
	if !strings.HasPrefix(t.rest[2:], "{") || end < 0 {
		return fmt.Errorf("\\p wants a name in braces")
	}
	name := t.rest[3:end]
	for _, prefix := range []string{"Script=", "sc=", "General_Category=", "gc="} {
		name = strings.TrimPrefix(name, prefix)
	}
	t.replace(end+1, t.rest[:2]+"{"+name+"}")
	return nil
}
