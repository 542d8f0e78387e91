package grammar

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// MaxDepth bounds the calls of rules within each other.
const MaxDepth = 64

// maxInstructions bounds a grammar.
const maxInstructions = 1 << 19

// Errors of grammars that cannot be had.
var (
	ErrEndless  = errors.New("grammar: no text of it has an end within its depth")
	ErrTooLarge = errors.New("grammar: it is too large")
)

// State is a place in a grammar: an instruction and all that come after it.
type State int32

// Return is where a rule ends.
const Return State = 0

// Rule is a part of a grammar that can be called from several places, from
// within itself too.
type Rule int32

// Control stands for a control token.
type Control int32

type op uint8

const (
	opReturn  op = iota
	opBytes      // a byte from lo to hi, then out
	opSplit      // any of outs
	opCall       // rule arg, then out
	opLexeme     // lexeme arg, then out
	opControl    // control arg, then out
)

type instruction struct {
	op     op
	lo, hi byte
	arg    int32
	out    State
	outs   []State
}

// Builder puts a grammar together from its end: each method returns the state
// from which something is read before out.
type Builder struct {
	code    []instruction
	rules   []State // where each begins
	lexemes []*Lexeme
	// bytes are the states that read one byte: literals with the same ending
	// share it.
	bytes map[literalKey]State
}

type literalKey struct {
	b   byte
	out State
}

// NewBuilder returns a builder that has nothing but Return.
func NewBuilder() *Builder {
	return &Builder{code: []instruction{{op: opReturn}}, bytes: map[literalKey]State{}}
}

func (b *Builder) add(i instruction) State {
	if len(b.code) <= maxInstructions {
		b.code = append(b.code, i)
	}
	return State(len(b.code) - 1)
}

// Literal reads a text.
func (b *Builder) Literal(text string, out State) State {
	for i := len(text) - 1; i >= 0; i-- {
		out = b.byte(text[i], out)
	}
	return out
}

func (b *Builder) byte(c byte, out State) State {
	k := literalKey{c, out}
	at, ok := b.bytes[k]
	if !ok {
		at = b.add(instruction{op: opBytes, lo: c, hi: c, out: out})
		b.bytes[k] = at
	}
	return at
}

// Literals reads any of some texts. Those that begin alike are one way to read,
// however many they are.
func (b *Builder) Literals(texts []string, out State) State {
	texts = slices.Clone(texts)
	slices.Sort(texts)
	return b.literals(slices.Compact(texts), 0, out)
}

// literals reads what sorted texts have from byte n on.
func (b *Builder) literals(texts []string, n int, out State) State {
	var all []State
	for len(texts) > 0 {
		if len(texts[0]) == n {
			all = append(all, out)
			texts = texts[1:]
			continue
		}
		same := 1
		for same < len(texts) && texts[same][n] == texts[0][n] {
			same++
		}
		if same == 1 {
			all = append(all, b.Literal(texts[0][n:], out))
		} else {
			all = append(all, b.byte(texts[0][n], b.literals(texts[:same], n+1, out)))
		}
		texts = texts[same:]
	}
	return b.Choice(all...)
}

// Choice reads any of several.
func (b *Builder) Choice(outs ...State) State {
	if len(outs) == 1 {
		return outs[0]
	}
	return b.add(instruction{op: opSplit, outs: outs})
}

// Open returns a choice that is still to be closed: to go back to it.
func (b *Builder) Open() State { return b.add(instruction{op: opSplit}) }

// Close says what an open choice reads.
func (b *Builder) Close(open State, outs ...State) { b.code[open].outs = outs }

// Call reads a rule.
func (b *Builder) Call(r Rule, out State) State {
	return b.add(instruction{op: opCall, arg: int32(r), out: out})
}

// Lexeme reads a lexeme.
func (b *Builder) Lexeme(l *Lexeme, out State) State {
	b.lexemes = append(b.lexemes, l)
	return b.add(instruction{op: opLexeme, arg: int32(len(b.lexemes) - 1), out: out})
}

// Control reads a control token.
func (b *Builder) Control(c Control, out State) State {
	return b.add(instruction{op: opControl, arg: int32(c), out: out})
}

// NewRule returns a rule that is still to be defined.
func (b *Builder) NewRule() Rule {
	b.rules = append(b.rules, -1)
	return Rule(len(b.rules) - 1)
}

// Define says where a rule begins. It ends at Return.
func (b *Builder) Define(r Rule, start State) { b.rules[r] = start }

// Size returns how many instructions there are.
func (b *Builder) Size() int { return len(b.code) }

// Grammar is a set of texts. It does not change.
type Grammar struct {
	code    []instruction
	rules   []State
	lexemes []*Lexeme
	start   State
	// need is, by state, how many calls within each other it takes at least to
	// come to Return.
	need []int32
}

// Grammar returns the texts from start to Return.
func (b *Builder) Grammar(start State) (*Grammar, error) {
	if len(b.code) > maxInstructions {
		return nil, ErrTooLarge
	}
	for r, at := range b.rules {
		if at < 0 {
			panic(fmt.Sprintf("grammar: rule %d was not defined", r))
		}
	}
	g := &Grammar{code: b.code, rules: b.rules, lexemes: b.lexemes, start: start}
	g.measure()
	if g.need[start] > MaxDepth {
		return nil, ErrEndless
	}
	return g, nil
}

const endless = math.MaxInt32 / 2

// measure finds what each state needs. What it takes through a call depends on
// states elsewhere, so a change goes on to all that depend on it.
func (g *Grammar) measure() {
	users := make([][]State, len(g.code)) // of a state
	use := func(of, user State) { users[of] = append(users[of], user) }
	for s := range g.code {
		i := &g.code[s]
		switch i.op {
		case opReturn:
			continue
		case opSplit:
			for _, out := range i.outs {
				use(out, State(s))
			}
			continue
		case opCall:
			use(g.rules[i.arg], State(s))
		}
		use(i.out, State(s))
	}
	g.need = make([]int32, len(g.code))
	for s := range g.need {
		g.need[s] = endless
	}
	g.need[Return] = 0
	open := []State{Return}
	for len(open) > 0 {
		s := open[len(open)-1]
		open = open[:len(open)-1]
		for _, user := range users[s] {
			if n := g.needOf(user); n < g.need[user] {
				g.need[user] = n
				open = append(open, user)
			}
		}
	}
}

func (g *Grammar) needOf(s State) int32 {
	i := &g.code[s]
	n := int32(endless)
	switch i.op {
	case opSplit:
		for _, out := range i.outs {
			n = min(n, g.need[out])
		}
		return n
	case opCall:
		return min(endless, max(g.need[g.rules[i.arg]]+1, g.need[i.out]))
	}
	return g.need[i.out]
}
