package dfa

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Pattern returns the texts in which a regular expression of ECMAScript, in
// its Unicode mode, is found: that is what "pattern" means in JSON Schema. What
// is not regular (look-around, references back, word boundaries) is an error.
func (m *Maker) Pattern(pattern string) (*Chars, error) {
	translated, err := translate(pattern)
	if err != nil {
		return nil, err
	}
	parsed, err := syntax.Parse(translated, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("not understood: %w", err)
	}
	prog, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, fmt.Errorf("not understood: %w", err)
	}
	p := &matcher{maker: m, prog: prog, seen: make([]int, len(prog.Inst))}
	return p.chars()
}

// matcher runs a program on all texts at once.
type matcher struct {
	maker   *Maker
	prog    *syntax.Prog
	seen    []int // by instruction, the number of the closure that has it
	closure int
}

// found is a place in the text from where on anything matches.
const found = "found"

// The first state of a text is told apart from others with the same
// instructions: there the text's beginning matches too.
const (
	atBegin = "^"
	inside  = "."
)

// key is a set of instructions, as a text.
func key(where string, set []uint32) string {
	b := make([]byte, 0, 1+3*len(set))
	b = append(b, where...)
	for _, pc := range set {
		b = append(b, byte(pc>>16), byte(pc>>8), byte(pc))
	}
	return string(b)
}

func instructions(key string) []uint32 {
	var set []uint32
	for b := key[1:]; b != ""; b = b[3:] {
		set = append(set, uint32(b[0])<<16|uint32(b[1])<<8|uint32(b[2]))
	}
	return set
}

func (m *matcher) chars() (*Chars, error) {
	c, err := m.classes()
	if err != nil {
		return nil, err
	}
	start, over := m.close([]uint32{uint32(m.prog.Start)}, syntax.EmptyBeginText)
	first := key(atBegin, start)
	if over {
		first = found
	}
	x := explored[string]{
		maker: m.maker,
		chars: c,
		accepts: func(s string) bool {
			if s == found {
				return true
			}
			flags := syntax.EmptyEndText
			if s == first {
				flags |= syntax.EmptyBeginText
			}
			_, over := m.close(instructions(s), flags)
			return over
		},
		step: func(s string, class int32) (string, bool) {
			if s == found {
				return found, true
			}
			return m.step(s, c.spans[class].lo), m.maker.spend(0)
		},
	}
	out, err := x.explore(first)
	if !m.maker.spend(0) {
		return nil, ErrTooLarge // what was not explored is missing
	}
	return out, err
}

// step returns the state after a character. A match may also begin behind it.
func (m *matcher) step(s string, r rune) string {
	next := []uint32{uint32(m.prog.Start)}
	for _, pc := range instructions(s) {
		i := &m.prog.Inst[pc]
		if isRune(i.Op) && i.MatchRune(r) {
			next = append(next, i.Out)
		}
	}
	set, over := m.close(next, 0)
	if over {
		return found
	}
	return key(inside, set)
}

func isRune(op syntax.InstOp) bool {
	return op == syntax.InstRune || op == syntax.InstRune1 || op == syntax.InstRuneAny || op == syntax.InstRuneAnyNotNL
}

// close follows what needs no character. It keeps those that read one and those
// that wait for the end of the text, and says whether the pattern was found.
func (m *matcher) close(from []uint32, at syntax.EmptyOp) (set []uint32, over bool) {
	m.closure++
	open := slices.Clone(from)
	for len(open) > 0 {
		pc := open[len(open)-1]
		open = open[:len(open)-1]
		if !m.maker.spend(1) || m.seen[pc] == m.closure {
			continue
		}
		m.seen[pc] = m.closure
		switch i := &m.prog.Inst[pc]; i.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			open = append(open, i.Arg, i.Out)
		case syntax.InstCapture, syntax.InstNop:
			open = append(open, i.Out)
		case syntax.InstEmptyWidth:
			if want := syntax.EmptyOp(i.Arg); want&^at == 0 {
				open = append(open, i.Out)
			} else if want == syntax.EmptyEndText {
				set = append(set, pc)
			}
		case syntax.InstMatch:
			return nil, true
		default:
			if isRune(i.Op) {
				set = append(set, pc)
			}
		}
	}
	slices.Sort(set)
	return set, false
}

// classes cuts the characters where any instruction tells them apart.
func (m *matcher) classes() (*Chars, error) {
	cuts := map[rune]bool{}
	for i := range m.prog.Inst {
		switch inst := &m.prog.Inst[i]; inst.Op {
		case syntax.InstRuneAnyNotNL:
			cuts['\n'], cuts['\n'+1] = true, true
		case syntax.InstRune, syntax.InstRune1:
			if len(inst.Rune) == 1 { // with its other cases, if it is folded
				for r := unicode.SimpleFold(inst.Rune[0]); ; r = unicode.SimpleFold(r) {
					if cuts[r], cuts[r+1] = true, true; r == inst.Rune[0] {
						break
					}
				}
				continue
			}
			for n, r := range inst.Rune {
				cuts[r+rune(n%2)] = true
			}
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(inst.Arg)&^(syntax.EmptyBeginText|syntax.EmptyEndText) != 0 {
				return nil, fmt.Errorf("word boundaries are not supported")
			}
		}
	}
	delete(cuts, utf8.MaxRune+1)
	return classed(cuts), nil
}
