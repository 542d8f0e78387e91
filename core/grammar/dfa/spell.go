package dfa

import (
	"fmt"
	"unicode/utf8"
)

// spelling says in which bytes characters stand.
type spelling interface {
	// spell appends the sequences of the characters from lo to hi.
	spell(dst []sequence, lo, hi rune, to int32) []sequence
	// escape appends other sequences of any character, which lead to a state as
	// if no character had come before.
	escape(dst []sequence, to int32) []sequence
	// quotes says that a quotation mark ends a text.
	quotes() bool
}

// plain is UTF-8.
type plain struct{}

func (plain) quotes() bool { return false }

func (plain) escape(dst []sequence, _ int32) []sequence { return dst }

func (plain) spell(dst []sequence, lo, hi rune, to int32) []sequence {
	return appendUTF8(dst, lo, hi, to)
}

// quoted is the inside of a JSON string. Without escapes each character has
// its shortest spelling alone; with them, every one.
type quoted struct{ escapes bool }

func (quoted) quotes() bool { return true }

func (q quoted) spell(dst []sequence, lo, hi rune, to int32) []sequence {
	for r := lo; r <= min(hi, '\\'); r++ {
		if e, ok := shortEscape(r); ok {
			dst = append(dst, sequence{literal(e), to})
		} else if r < ' ' && !q.escapes {
			dst = append(dst, sequence{literal(fmt.Sprintf(`\u%04x`, r)), to})
		}
	}
	for _, part := range [][2]rune{{' ', '!'}, {'#', '['}, {']', 0x10ffff}} {
		if a, b := max(lo, part[0]), min(hi, part[1]); a <= b {
			dst = appendUTF8(dst, a, b, to)
		}
	}
	return dst
}

func (q quoted) escape(dst []sequence, to int32) []sequence {
	if q.escapes {
		dst = appendEscapes(append(dst, sequence{literal(`\/`), to}), to)
	}
	return dst
}

// Quote returns the shortest JSON of a string.
func Quote(text string) string {
	b := []byte{'"'}
	for _, r := range text {
		e, ok := shortEscape(r)
		switch {
		case ok:
			b = append(b, e...)
		case r < ' ':
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}

func shortEscape(r rune) (string, bool) {
	switch r {
	case '"', '\\':
		return `\` + string(r), true
	case '\b':
		return `\b`, true
	case '\f':
		return `\f`, true
	case '\n':
		return `\n`, true
	case '\r':
		return `\r`, true
	case '\t':
		return `\t`, true
	}
	return "", false
}

var (
	hexDigits  = []byteRange{{'0', '9'}, {'A', 'F'}, {'a', 'f'}}
	hexLetterD = []byteRange{{'D', 'D'}, {'d', 'd'}}
)

// appendEscapes appends \u and four digits for each character of the basic
// plane, and two such for the others.
func appendEscapes(dst []sequence, to int32) []sequence {
	u := [][]byteRange{{{'\\', '\\'}}, {{'u', 'u'}}}
	unit := func(first, second []byteRange) [][]byteRange {
		return append(append([][]byteRange{}, u...), first, second, hexDigits, hexDigits)
	}
	notD := []byteRange{{'0', '9'}, {'A', 'C'}, {'E', 'F'}, {'a', 'c'}, {'e', 'f'}}
	high := unit(hexLetterD, []byteRange{{'8', '9'}, {'A', 'B'}, {'a', 'b'}})
	low := unit(hexLetterD, []byteRange{{'C', 'F'}, {'c', 'f'}})
	for _, form := range [][][]byteRange{
		unit(notD, hexDigits),
		unit(hexLetterD, []byteRange{{'0', '7'}}),
		append(high, low...),
	} {
		dst = appendProduct(dst, form, nil, to)
	}
	return dst
}

// appendProduct appends a sequence for each choice of one range a place.
func appendProduct(dst []sequence, places [][]byteRange, chosen []byteRange, to int32) []sequence {
	if len(places) == 0 {
		return append(dst, sequence{append([]byteRange{}, chosen...), to})
	}
	for _, r := range places[0] {
		dst = appendProduct(dst, places[1:], append(chosen, r), to)
	}
	return dst
}
