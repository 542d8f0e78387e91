package dfa

import (
	"maps"
	"slices"
	"unicode/utf8"
)

// explored builds a Chars from states of any kind, found as they are reached.
type explored[S comparable] struct {
	maker *Maker
	chars *Chars
	ids   map[S]int32
	found []S
	// accepts and tail, which may be nil, are those of Chars.
	accepts func(S) bool
	tail    func(S) uint8
	// step returns the state after a character of a class, ok false where
	// there is none.
	step func(s S, class int32) (next S, ok bool)
}

// explore adds the states that start leads to and drops those that lead to no
// text.
func (x *explored[S]) explore(start S) (*Chars, error) {
	x.ids = map[S]int32{}
	x.id(start)
	c := x.chars
	for i := 0; i < len(x.found); i++ {
		if len(x.found) > maxStates || !x.maker.spend(c.classes) {
			return nil, ErrTooLarge
		}
		s := x.found[i]
		c.accept = append(c.accept, x.accepts(s))
		if x.tail != nil {
			c.tail = append(c.tail, x.tail(s))
		}
		for class := range int32(c.classes) {
			to := int32(dead)
			if next, ok := x.step(s, class); ok {
				to = x.id(next)
			}
			c.next = append(c.next, to)
		}
	}
	return c.trimmed()
}

func (x *explored[S]) id(s S) int32 {
	id, ok := x.ids[s]
	if !ok {
		id = int32(len(x.found))
		x.ids[s] = id
		x.found = append(x.found, s)
	}
	return id
}

// trimmed returns the automaton without the ways that lead to no text.
func (c *Chars) trimmed() (*Chars, error) {
	live := c.live()
	if !live[0] {
		return nil, ErrEmpty
	}
	for i, to := range c.next {
		if to != dead && !live[to] {
			c.next[i] = dead
		}
	}
	return c, nil
}

// live says of each state whether a text is reached from it.
func (c *Chars) live() []bool {
	into := make([][]int32, c.states())
	for i, to := range c.next {
		if to != dead {
			into[to] = append(into[to], int32(i/c.classes))
		}
	}
	live := slices.Clone(c.accept)
	var open []int32
	for s, ok := range live {
		if ok {
			open = append(open, int32(s))
		}
	}
	for len(open) > 0 {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		for _, from := range into[s] {
			if !live[from] {
				live[from] = true
				open = append(open, from)
			}
		}
	}
	return live
}

func sorted(cuts map[rune]bool) []rune {
	cuts[0] = true
	delete(cuts, utf8.MaxRune+1)
	return slices.Sorted(maps.Keys(cuts))
}

// Intersect returns the texts that are in both sets.
func (m *Maker) Intersect(a, b *Chars) (*Chars, error) {
	cuts := map[rune]bool{}
	for _, c := range []*Chars{a, b} {
		for _, s := range c.spans {
			cuts[s.lo] = true
		}
	}
	type pair struct{ a, b int32 }
	c := classed(cuts)
	of := make([]pair, c.classes)
	for i, s := range c.spans {
		of[i] = pair{a.classOf(s.lo), b.classOf(s.lo)}
	}
	x := explored[pair]{
		maker:   m,
		chars:   c,
		accepts: func(p pair) bool { return a.accept[p.a] && b.accept[p.b] },
		step: func(p pair, class int32) (pair, bool) {
			next := pair{a.step(p.a, of[class].a), b.step(p.b, of[class].b)}
			return next, next.a != dead && next.b != dead
		},
	}
	return x.explore(pair{})
}

// Anything returns the set of all texts.
func Anything() *Chars {
	c := classed(map[rune]bool{})
	c.next, c.accept = []int32{0}, []bool{true}
	return c
}

// Length returns the texts of min to max characters; a negative max is no
// bound.
func (m *Maker) Length(min, max int) (*Chars, error) {
	last := max
	if max < 0 {
		last = min
	}
	if last > maxStates {
		return nil, ErrTooLarge
	}
	x := explored[int]{
		maker:   m,
		chars:   classed(map[rune]bool{}),
		accepts: func(n int) bool { return n >= min },
		step: func(n int, _ int32) (int, bool) {
			if n < last {
				return n + 1, true
			}
			return n, max < 0
		},
	}
	return x.explore(0)
}

// Choice returns the set of some texts, which are valid UTF-8.
func (m *Maker) Choice(texts ...string) (*Chars, error) {
	cuts := map[rune]bool{}
	size := 0
	for _, t := range texts {
		size += len(t)
		for _, r := range t {
			cuts[r], cuts[r+1] = true, true
		}
	}
	if size > maxStates {
		return nil, ErrTooLarge
	}
	begun := map[string]map[int32]string{} // by class, what a beginning goes on to
	whole := map[string]bool{}
	c := classed(cuts)
	for _, t := range texts {
		whole[t] = true
		for i, r := range t {
			if begun[t[:i]] == nil {
				begun[t[:i]] = map[int32]string{}
			}
			begun[t[:i]][c.classOf(r)] = t[:i+utf8.RuneLen(r)]
		}
	}
	x := explored[string]{
		maker:   m,
		chars:   c,
		accepts: func(s string) bool { return whole[s] },
		step: func(s string, class int32) (string, bool) {
			next, ok := begun[s][class]
			return next, ok
		},
	}
	return x.explore("")
}

// Except returns all texts but these, which are valid UTF-8.
func (m *Maker) Except(texts ...string) (*Chars, error) {
	if len(texts) == 0 {
		return Anything(), nil
	}
	only, err := m.Choice(texts...)
	if err != nil {
		return nil, err
	}
	x := explored[int32]{ // of only; dead is outside of it for good
		maker:   m,
		chars:   &Chars{spans: only.spans, classes: only.classes},
		accepts: func(s int32) bool { return s == dead || !only.accept[s] },
		step: func(s int32, class int32) (int32, bool) {
			if s == dead {
				return dead, true
			}
			return only.step(s, class), true
		},
	}
	return x.explore(0)
}
