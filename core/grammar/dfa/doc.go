// Package dfa makes deterministic automata for sets of texts: those that match
// a pattern, those of a certain length, the numbers between two bounds.
//
// A Chars reads characters. Bytes spells one out: a Bytes reads the bytes in
// which a text stands in JSON or in plain UTF-8. Every state of either lies on
// the way to a text of the set, so whoever follows an automaton never gets
// stuck; a set without any text is an error, as is one that takes more states
// or more work than is reasonable for a part of one request.
//
// A Chars does not change. A Bytes fills in its table while it is read, and
// belongs to one goroutine at a time.
package dfa

import (
	"errors"
	"unicode/utf8"
)

// The errors of automata that cannot be had.
var (
	ErrEmpty    = errors.New("no text is in this set")
	ErrTooLarge = errors.New("this set takes too large an automaton")
)

// maxStates bounds the states of a Chars.
const maxStates = 1 << 14

// Maker makes automata, with one bound on the work of all of them.
type Maker struct{ work int }

// NewMaker returns a maker that takes so many steps at most; a million are
// some ten milliseconds. After that it returns ErrTooLarge.
func NewMaker(work int) *Maker { return &Maker{work: work} }

// spend takes steps off and reports whether there were as many.
func (m *Maker) spend(steps int) bool {
	m.work -= steps
	return m.work >= 0
}

// dead is the state from which no text is reached.
const dead = -1

// Chars is a deterministic automaton over characters. State 0 is the start.
type Chars struct {
	// spans cover every character; those of one class are told apart nowhere.
	spans   []span
	classes int
	next    []int32 // of state s and class c at s*classes+c
	accept  []bool  // by state
	// tail is, by state, how many of the last characters read belong to the end
	// mark of Until and not to the text. Nil is 0 for all.
	tail []uint8
}

// span is a range of characters of one class.
type span struct {
	lo, hi rune
	class  int32
}

func (c *Chars) states() int { return len(c.accept) }

func (c *Chars) step(state, class int32) int32 { return c.next[int(state)*c.classes+int(class)] }

// ended reports whether no character comes after a state.
func (c *Chars) ended(state int32) bool {
	for _, to := range c.next[int(state)*c.classes:][:c.classes] {
		if to != dead {
			return false
		}
	}
	return true
}

// classOf returns the class of a character.
func (c *Chars) classOf(r rune) int32 {
	lo, hi := 0, len(c.spans)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; c.spans[mid].lo <= r {
			lo = mid
		} else {
			hi = mid
		}
	}
	return c.spans[lo].class
}

// Has reports whether a text is in the set.
func (c *Chars) Has(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	var state int32
	for _, r := range text {
		if state = c.step(state, c.classOf(r)); state == dead {
			return false
		}
	}
	return c.accept[state]
}

// classed returns an automaton without states whose classes are cut at the
// given characters: each begins a span.
func classed(cuts map[rune]bool) *Chars {
	c := &Chars{spans: make([]span, 0, len(cuts)+1)}
	for _, lo := range sorted(cuts) {
		if n := len(c.spans); n > 0 {
			c.spans[n-1].hi = lo - 1
		}
		c.spans = append(c.spans, span{lo: lo, hi: utf8.MaxRune, class: int32(len(c.spans))})
	}
	c.classes = len(c.spans)
	return c
}
