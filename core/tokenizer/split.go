package tokenizer

import "strings"

// The pattern that cuts normalised text into pieces. Go's regexp has no
// lookahead, and its engine would be the slowest part of encoding, so pieceLen
// is the pattern by hand: it looks at the first one or two characters, which
// decide the alternative.
const pattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)` + // a contraction
	`|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+` + // a word, with one character before it
	`|\p{N}` + // one digit
	`| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*` + // symbols, with a space before and line ends after
	`|\s*[\r\n]+` + // white space up to its last line end
	`|\s+(?!\S)|\s+` // white space, less the character that goes with what follows

// oldPattern is what conversions by transformers 5 write in its place; it takes
// no \p{M} for part of a word. The model was trained with the other one, which
// is used whichever of the two a file holds.
const oldPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)` +
	`|[^\r\n\p{L}\p{N}]?\p{L}+` +
	`|\p{N}` +
	`| ?[^\s\p{L}\p{N}]+[\r\n]*` +
	`|\s*[\r\n]+` +
	`|\s+(?!\S)|\s+`

// pieceLen returns the length in bytes of the first piece of s, which is not
// empty.
func pieceLen(s string) int {
	c, n := decode(s)
	switch c {
	case letter, mark:
		return n + wordLen(s[n:])
	case number:
		return n
	case space:
		if s[0] == '\r' || s[0] == '\n' {
			return spaceLen(s)
		}
	}
	if end := contractionLen(s); end > 0 {
		return end
	}
	if word := wordLen(s[n:]); word > 0 {
		return n + word
	}
	if c == other {
		return n + symbolsLen(s[n:])
	}
	if s[0] == ' ' && n < len(s) {
		if next, m := decode(s[n:]); next == other {
			return n + m + symbolsLen(s[n+m:])
		}
	}
	return spaceLen(s)
}

// contractionLen returns the length of (?i:'s|'t|'re|'ve|'m|'ll|'d) at the
// start of s, or 0. Case folding takes the long s (U+017F) for an s.
func contractionLen(s string) int {
	if len(s) < 2 || s[0] != '\'' {
		return 0
	}
	switch s[1] | 0x20 {
	case 's', 't', 'm', 'd':
		return 2
	}
	if strings.HasPrefix(s[1:], "ſ") {
		return 1 + len("ſ")
	}
	if len(s) < 3 {
		return 0
	}
	switch [2]byte{s[1] | 0x20, s[2] | 0x20} {
	case [2]byte{'r', 'e'}, [2]byte{'v', 'e'}, [2]byte{'l', 'l'}:
		return 3
	}
	return 0
}

// wordLen returns the length of [\p{L}\p{M}]* at the start of s.
func wordLen(s string) int {
	for i := 0; i < len(s); {
		c, n := decode(s[i:])
		if c != letter && c != mark {
			return i
		}
		i += n
	}
	return len(s)
}

// symbolsLen returns the length of [^\s\p{L}\p{M}\p{N}]*[\r\n]* at the start of s.
func symbolsLen(s string) int {
	i := 0
	for i < len(s) {
		c, n := decode(s[i:])
		if c != other {
			break
		}
		i += n
	}
	for i < len(s) && (s[i] == '\r' || s[i] == '\n') {
		i++
	}
	return i
}

// spaceLen returns the length of the first that matches of \s*[\r\n]+,
// \s+(?!\S) and \s+ at the start of s, which is white space.
func spaceLen(s string) int {
	end, last, lineEnd := 0, 0, 0
	for end < len(s) {
		c, n := decode(s[end:])
		if c != space {
			break
		}
		if s[end] == '\r' || s[end] == '\n' {
			lineEnd = end + 1
		}
		last = end
		end += n
	}
	switch {
	case lineEnd > 0:
		return lineEnd
	case end < len(s) && last > 0:
		return last
	}
	return end
}
