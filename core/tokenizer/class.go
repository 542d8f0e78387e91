package tokenizer

import "unicode/utf8"

// class says how the pattern of split.go sees a character.
type class uint8

const (
	other  class = iota
	letter       // \p{L}
	mark         // \p{M}
	number       // \p{N}
	space        // \s
)

type runeRange struct{ first, last rune }

type classRange struct {
	first, last rune
	class       class
}

const classBlock = 256

// classes holds the class of every code point in blocks: the class of r is
// blocks[index[r/classBlock]][r%classBlock]. Block 0 is other throughout, for
// the code points that no range names.
var classes = newClassTable(classRanges)

type classTable struct {
	index  [(utf8.MaxRune + 1) / classBlock]uint16
	blocks [][classBlock]class
}

func newClassTable(ranges []classRange) *classTable {
	t := &classTable{blocks: make([][classBlock]class, 1, 1024)}
	for _, in := range ranges {
		for r := in.first; r <= in.last; r++ {
			at := &t.index[r/classBlock]
			if *at == 0 {
				*at = uint16(len(t.blocks))
				t.blocks = append(t.blocks, [classBlock]class{})
			}
			t.blocks[*at][r%classBlock] = in.class
		}
	}
	return t
}

func (t *classTable) of(r rune) class {
	return t.blocks[t.index[r/classBlock]][r%classBlock]
}

// decode returns the class and the length in bytes of the first character of
// s, which is not empty.
func decode(s string) (class, int) {
	if s[0] < utf8.RuneSelf {
		return classes.blocks[classes.index[0]][s[0]], 1
	}
	r, n := utf8.DecodeRuneInString(s)
	return classes.of(r), n
}
