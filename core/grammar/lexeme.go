package grammar

import "calla/core/grammar/dfa"

// Lexeme is a set of texts that needs no stack: those of an automaton, where
// asked for only those of a certain length. It belongs to the grammars of one
// goroutine at a time, unless the automaton's table is filled.
type Lexeme struct {
	bytes    *dfa.Bytes
	counts   bool
	min, max int // characters; a negative max is no bound
}

// NewLexeme returns the texts of an automaton.
func NewLexeme(b *dfa.Bytes) *Lexeme { return &Lexeme{bytes: b} }

// NewCountedLexeme returns the texts of min to max characters; a negative max is
// no bound. The automaton must have texts of every length, and the way to each
// open: for the number is looked at apart from it.
func NewCountedLexeme(b *dfa.Bytes, min, max int) *Lexeme {
	return &Lexeme{bytes: b, counts: min > 0 || max >= 0, min: min, max: max}
}

// place is a place in a lexeme: a state of the automaton, and, where they are
// counted, the number of characters read.
type place struct {
	state int32
	count int32
}

func (l *Lexeme) start() place { return place{state: l.bytes.Start()} }

// step returns the place after one more byte, ok false where there is none.
func (l *Lexeme) step(p place, b byte) (next place, ok bool) {
	next.state = l.bytes.Next(p.state, b)
	if next.state == 0 {
		return next, false
	}
	if !l.counts {
		return next, true
	}
	if next.count = p.count; l.bytes.Between(next.state) {
		next.count++
	}
	return next, l.fits(next)
}

// fits reports whether a text of the right length goes through a place.
func (l *Lexeme) fits(p place) bool {
	tail := l.bytes.Tail(p.state)
	length := int(p.count) - tail
	if l.bytes.Accepts(p.state) {
		return l.admits(length)
	}
	most := int(p.count)
	if !l.bytes.Between(p.state) {
		most++ // the character that has begun
	}
	if l.max < 0 || most <= l.max {
		return true
	}
	// Too many characters, unless the last are the mark's.
	return tail > 0 && l.admits(length)
}

// admits reports whether a text may have so many characters.
func (l *Lexeme) admits(length int) bool {
	return !l.counts || length >= l.min && (l.max < 0 || length <= l.max)
}

// goesOn reports whether more of the lexeme may come.
func (l *Lexeme) goesOn(p place) bool { return !l.bytes.Ended(p.state) }

func (l *Lexeme) accepts(p place) bool { return l.bytes.Accepts(p.state) }
