package dfa

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Bytes is a deterministic automaton over bytes. State 0 is dead.
type Bytes struct {
	chars    *Chars
	spelling spelling
	states   []byteState
	place    []int32          // by state of chars, its state here; 0 where it has none yet
	interned map[string]int32 // states within a character, by where they lead
	end      int32            // the state after the quotation mark; 0 without one
}

// byteState is a state of Bytes: between two characters, or within one.
type byteState struct {
	char int32       // of chars, where between
	row  *[256]int32 // nil until it is needed
	kind stateKind
}

type stateKind uint8

const (
	between stateKind = iota
	within
	atEnd // after the quotation mark that ends a string
)

// Bytes spells the texts in UTF-8.
func (c *Chars) Bytes() *Bytes { return newBytes(c, plain{}) }

// JSON spells the texts as JSON has them within a string, each in its shortest
// way, with the quotation mark that ends the string.
func (c *Chars) JSON() *Bytes { return newBytes(c, quoted{}) }

// AnyJSON is the inside of any JSON string, in every way that JSON allows but
// surrogates without their partner, with the quotation mark that ends it. The
// marks are not in it as they are written; with an escape they may be. Its
// table is filled, so any number of goroutines may read it.
func AnyJSON(marks ...string) *Bytes {
	c, err := NewMaker(1<<20).Without(Anything(), marks...)
	if err != nil {
		panic("dfa: any string: " + err.Error())
	}
	return newBytes(c, quoted{escapes: true}).Fill()
}

func newBytes(c *Chars, s spelling) *Bytes {
	b := &Bytes{chars: c, spelling: s, states: make([]byteState, 1), place: make([]int32, c.states()), interned: map[string]int32{}}
	b.states[0].row, b.states[0].kind = new([256]int32), within
	b.placeOf(0)
	return b
}

// Start returns the first state.
func (b *Bytes) Start() int32 { return 1 }

// Next returns the state after one more byte, 0 where there is none.
func (b *Bytes) Next(state int32, c byte) int32 {
	row := b.states[state].row
	if row == nil {
		row = b.fill(state)
	}
	return row[c]
}

// Accepts reports whether a text may end in the state.
func (b *Bytes) Accepts(state int32) bool {
	s := b.states[state]
	if b.spelling.quotes() {
		return s.kind == atEnd
	}
	return s.kind == between && b.chars.accept[s.char]
}

// Ended reports whether nothing comes after the state.
func (b *Bytes) Ended(state int32) bool {
	s := b.states[state]
	return s.kind == atEnd || s.kind == between && !b.spelling.quotes() && b.chars.ended(s.char)
}

// Between reports whether a state stands after a whole character.
func (b *Bytes) Between(state int32) bool { return b.states[state].kind == between }

// Tail returns how many of the characters read belong to the mark that ends a
// text, see Until.
func (b *Bytes) Tail(state int32) int {
	if s := b.states[state]; b.chars.tail != nil && s.kind == between {
		return int(b.chars.tail[s.char])
	}
	return 0
}

// MaxTail returns the largest Tail of any state.
func (b *Bytes) MaxTail() int {
	most := uint8(0)
	for _, n := range b.chars.tail {
		most = max(most, n)
	}
	return int(most)
}

// placeOf returns the state that stands for one of chars.
func (b *Bytes) placeOf(char int32) int32 {
	if b.place[char] == 0 {
		b.place[char] = int32(len(b.states))
		b.states = append(b.states, byteState{char: char})
	}
	return b.place[char]
}

// fill makes the row of a state between characters.
func (b *Bytes) fill(state int32) *[256]int32 {
	s := &b.states[state]
	if s.kind == atEnd {
		s.row = new([256]int32)
		return s.row
	}
	char := s.char
	var all []sequence
	for i := 0; i < len(b.chars.spans); {
		first := b.chars.spans[i]
		to := b.chars.step(char, first.class)
		last := first
		for i++; i < len(b.chars.spans) && b.chars.step(char, b.chars.spans[i].class) == to; i++ {
			last = b.chars.spans[i]
		}
		if to != dead {
			all = b.spelling.spell(all, first.lo, last.hi, b.placeOf(to))
		}
	}
	if b.spelling.quotes() && b.chars.accept[char] {
		if b.end == 0 {
			b.end = int32(len(b.states))
			b.states = append(b.states, byteState{kind: atEnd})
		}
		all = append(all, sequence{bytes: literal(`"`), to: b.end})
	}
	all = b.spelling.escape(all, 1)
	slices.SortFunc(all, func(x, y sequence) int {
		return slices.CompareFunc(x.bytes, y.bytes, func(p, q byteRange) int { return int(p.lo) - int(q.lo) })
	})
	row := b.row(all, 0)
	b.states[state].row = row // states may have moved
	return row
}

// row makes the table of what the sequences have from their byte n on.
func (b *Bytes) row(all []sequence, n int) *[256]int32 {
	row := new([256]int32)
	for len(all) > 0 {
		r, same := all[0].bytes[n], 1
		for same < len(all) && all[same].bytes[n] == r {
			same++
		}
		to := all[0].to
		if len(all[0].bytes) > n+1 {
			to = b.intern(b.row(all[:same], n+1))
		}
		for c := int(r.lo); c <= int(r.hi); c++ {
			if row[c] != 0 {
				panic(fmt.Sprintf("dfa: byte %#x leads to two states", c))
			}
			row[c] = to
		}
		all = all[same:]
	}
	return row
}

// intern returns the state within a character that has this row.
func (b *Bytes) intern(row *[256]int32) int32 {
	var key []byte
	for c := 0; c < 256; {
		from := c
		for c++; c < 256 && row[c] == row[from]; c++ {
		}
		key = binary.AppendUvarint(append(key, byte(c-1)), uint64(row[from]))
	}
	id, ok := b.interned[string(key)]
	if !ok {
		id = int32(len(b.states))
		b.interned[string(key)] = id
		b.states = append(b.states, byteState{row: row, kind: within})
	}
	return id
}

// Fill fills in the table, so that any number of goroutines may read it.
func (b *Bytes) Fill() *Bytes {
	for s := int32(1); int(s) < len(b.states); s++ {
		b.Next(s, 0)
	}
	return b
}
