package tokenizer

import "unicode/utf8"

const replacement = "\uFFFD"

// appendValid appends the characters of p to dst, U+FFFD for what is none, and
// returns as rest the last bytes of p where they begin a character that more
// bytes may complete.
//
// One U+FFFD stands for each maximal subpart (Unicode 3.9, "U+FFFD Substitution
// of Maximal Subparts"), where Go's own conversions count bytes.
func appendValid(dst, p []byte) (valid, rest []byte) {
	for len(p) > 0 {
		_, n := utf8.DecodeRune(p)
		switch {
		case n > 1 || p[0] < utf8.RuneSelf:
			dst = append(dst, p[:n]...)
		case !utf8.FullRune(p):
			return dst, p
		default:
			n = subpart(p)
			dst = append(dst, replacement...)
		}
		p = p[n:]
	}
	return dst, nil
}

// appendBroken appends what stands for an incomplete character that nothing
// will complete.
func appendBroken(dst, rest []byte) []byte {
	if len(rest) > 0 {
		dst = append(dst, replacement...)
	}
	return dst
}

// subpart returns how many bytes of p, which begins with no character, one
// replacement stands for: as many as begin some character, but at least one.
func subpart(p []byte) int {
	n := 1
	for n < len(p) && !utf8.FullRune(p[:n]) && !utf8.FullRune(p[:n+1]) {
		n++
	}
	return n
}
