package dfa

import "unicode/utf8"

// sequence is a set of byte strings of one length, a range a byte, that lead
// to a state.
type sequence struct {
	bytes []byteRange
	to    int32
}

type byteRange struct{ lo, hi byte }

func literal(text string) []byteRange {
	b := make([]byteRange, len(text))
	for i := range text {
		b[i] = byteRange{text[i], text[i]}
	}
	return b
}

// appendUTF8 appends the sequences of the characters from lo to hi, without
// surrogates, in the order of their bytes. Two sequences of a set have, byte by
// byte, the same range or disjoint ones, up to the first in which they differ.
func appendUTF8(dst []sequence, lo, hi rune, to int32) []sequence {
	for _, part := range [][2]rune{{0, 0x7f}, {0x80, 0x7ff}, {0x800, 0xd7ff}, {0xe000, 0xffff}, {0x10000, utf8.MaxRune}} {
		if a, b := max(lo, part[0]), min(hi, part[1]); a <= b {
			dst = appendSameLength(dst, a, b, to)
		}
	}
	return dst
}

// appendSameLength takes characters whose UTF-8 has one length. It cuts the
// range where a byte but the last begins or ends in the middle of its values.
func appendSameLength(dst []sequence, lo, hi rune, to int32) []sequence {
	for shift := 6 * (utf8.RuneLen(hi) - 1); shift > 0; shift -= 6 {
		low := rune(1)<<shift - 1 // what the bytes behind hold
		if lo&^low == hi&^low {
			continue // this byte and those before it are equal
		}
		if lo&low != 0 {
			dst = appendSameLength(dst, lo, lo|low, to)
			return appendSameLength(dst, lo|low+1, hi, to)
		}
		if hi&low != low {
			dst = appendSameLength(dst, lo, hi&^low-1, to)
			return appendSameLength(dst, hi&^low, hi, to)
		}
		break
	}
	var a, b [utf8.UTFMax]byte
	n := utf8.EncodeRune(a[:], lo)
	utf8.EncodeRune(b[:], hi)
	s := sequence{to: to}
	for i := range n {
		s.bytes = append(s.bytes, byteRange{a[i], b[i]})
	}
	return append(dst, s)
}
