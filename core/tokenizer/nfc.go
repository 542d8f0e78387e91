package tokenizer

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// nfc returns valid UTF-8 in Unicode normalisation form C, as the reference's
// normaliser makes it. Package norm makes another one in two cases, so it only
// finds what is normal already and lends its tables: it puts a U+034F into a
// run of more than 30 marks, and its Unicode is newer (see lateRanges).
//
// What norm holds for normal needs no work: a late character is inert here, so
// it only makes more places at which a normal text is cut into normal parts.
func nfc(text string) string {
	n := norm.NFC.QuickSpanString(text)
	if n == len(text) {
		return text
	}
	out := make([]byte, 0, len(text)+len(text)/8)
	var c composer
	for n < len(text) {
		end := segmentEnd(text, n)
		out = c.append(append(out, text[:n]...), text[n:end])
		text = text[end:]
		n = norm.NFC.QuickSpanString(text) // a place to cut
	}
	return string(append(out, text...))
}

// segmentEnd returns the first place after i at which text may be cut without
// changing its normal form.
func segmentEnd(text string, i int) int {
	for i < len(text) {
		_, n := utf8.DecodeRuneInString(text[i:])
		i += n
		if cuts(text, i) {
			return i
		}
	}
	return i
}

// cuts reports whether the characters before and after i do not interact.
func cuts(text string, i int) bool {
	if i == len(text) || norm.NFC.PropertiesString(text[i:]).BoundaryBefore() {
		return true
	}
	after, _ := utf8.DecodeRuneInString(text[i:])
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	return late(after) || late(before)
}

func late(r rune) bool {
	_, found := slices.BinarySearchFunc(lateRanges, r, func(in runeRange, r rune) int {
		switch {
		case in.last < r:
			return -1
		case in.first > r:
			return 1
		}
		return 0
	})
	return found
}

// composer brings segments into normal form. It keeps its buffers.
type composer struct {
	chars  []char
	pair   []byte
	joined []byte
	known  [64]composition // by a hash of the pair; a text has few different ones
}

// composition is a pair of characters and what they compose to, or 0.
type composition struct{ a, b, composite rune }

// char is a character without decomposition and its combining class.
type char struct {
	r   rune
	ccc uint8
	at  int // its place before ordering
}

// append appends the normal form of a segment: decomposed, its marks ordered,
// composed again.
func (c *composer) append(out []byte, segment string) []byte {
	c.decompose(segment)
	c.order()
	c.compose()
	for _, ch := range c.chars {
		out = utf8.AppendRune(out, ch.r)
	}
	return out
}

func (c *composer) decompose(segment string) {
	c.chars = c.chars[:0]
	for i, r := range segment {
		p := norm.NFC.PropertiesString(segment[i:])
		parts := p.Decomposition()
		if parts == nil {
			c.push(r, p.CCC())
		}
		for len(parts) > 0 {
			r, n := utf8.DecodeRune(parts)
			c.push(r, norm.NFC.Properties(parts).CCC())
			parts = parts[n:]
		}
	}
}

func (c *composer) push(r rune, ccc uint8) {
	c.chars = append(c.chars, char{r, ccc, len(c.chars)})
}

// order sorts each run of marks by combining class. Marks of one class keep
// their order.
func (c *composer) order() {
	for start := 0; start < len(c.chars); start++ {
		end := start
		for end < len(c.chars) && c.chars[end].ccc > 0 {
			end++
		}
		slices.SortFunc(c.chars[start:end], func(a, b char) int {
			return cmp.Or(cmp.Compare(a.ccc, b.ccc), cmp.Compare(a.at, b.at))
		})
		start = end
	}
}

// compose joins each character to the last one of class 0 where a composite
// exists and nothing kept between them blocks it.
func (c *composer) compose() {
	kept, starter := c.chars[:0], -1
	var last uint8 // class of the last character kept after the starter, 0 for none
	for _, ch := range c.chars {
		if starter >= 0 && (last == 0 || last < ch.ccc) {
			if r, ok := c.composite(kept[starter].r, ch.r); ok {
				kept[starter].r = r
				continue
			}
		}
		if ch.ccc == 0 {
			starter = len(kept)
		}
		last = ch.ccc
		kept = append(kept, ch)
	}
	c.chars = kept
}

// composite returns the character that a and b compose to.
func (c *composer) composite(a, b rune) (rune, bool) {
	known := &c.known[(a+31*b)%rune(len(c.known))]
	if known.a != a || known.b != b {
		*known = composition{a, b, c.lookUp(a, b)}
	}
	return known.composite, known.composite != 0
}

func (c *composer) lookUp(a, b rune) rune {
	c.pair = utf8.AppendRune(utf8.AppendRune(c.pair[:0], a), b)
	c.joined = norm.NFC.Append(c.joined[:0], c.pair...)
	if r, n := utf8.DecodeRune(c.joined); n == len(c.joined) {
		return r
	}
	return 0
}
