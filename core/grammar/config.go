package grammar

import (
	"cmp"
	"encoding/binary"
	"errors"
	"slices"
)

// ErrAmbiguous ends a text that can be read in too many ways at once.
var ErrAmbiguous = errors.New("grammar: the text can be read in too many ways")

// maxThreads bounds the ways to read a text.
const maxThreads = 2048

// frame is where to go on when a rule ends. Equal frames are one.
type frame struct {
	id    int32
	up    *frame // nil: the text ends with the rule
	out   State
	depth int32
}

// thread is one way to read the text so far: the instruction that comes next,
// which reads something, and, of a lexeme that has begun, the place in it.
type thread struct {
	at    State
	place place
	stack *frame
}

// config is all ways to read a text. Equal configs are one.
type config struct {
	id      int32
	threads []thread
	ended   bool // the text may end here
	allowed *tokenSet
}

// dead is the config of a text that the grammar does not have.
var dead = &config{}

// Automaton is a grammar bound to a vocabulary. Any number of goroutines may use
// one: the vocabulary's lock guards it.
type Automaton struct {
	vocabulary *Vocabulary
	grammar    *Grammar
	start      *config

	configs map[string]*config
	frames  map[frameKey]*frame
	steps   map[stepKey]*config
	lastID  int32
	words   int // of kept masks, about
	sum     int // of the threads of configs

	// scratch
	seen    map[thread]struct{}
	threads []thread
	ended   bool
	key     []byte
	path    []*config
	mask    Mask
}

type frameKey struct {
	up  *frame
	out State
}

type stepKey struct {
	from   int32
	symbol int32 // a byte, or 256 and a control
}

// Bounds of what an automaton keeps.
const (
	maxSteps     = 1 << 18
	maxThreadSum = 1 << 18 // of all configs; 8 MiB
	maxMaskWords = 1 << 20 // 8 MiB
)

// firstControl is the symbol of control 0; those below are bytes.
const firstControl = 256

// Bind returns the automaton of a grammar.
func (v *Vocabulary) Bind(g *Grammar) (*Automaton, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	a := &Automaton{vocabulary: v, grammar: g, seen: map[thread]struct{}{}, path: make([]*config, v.deepest+1), mask: NewMask(v.tokens)}
	a.forget()
	a.begin()
	a.enter(g.start, nil)
	var err error
	a.start, err = a.settle()
	return a, err
}

// Vocabulary returns what the automaton is bound to.
func (a *Automaton) Vocabulary() *Vocabulary { return a.vocabulary }

// forget drops what is kept. Configs in use go on to be valid.
func (a *Automaton) forget() {
	a.configs, a.frames, a.steps = map[string]*config{}, map[frameKey]*frame{}, map[stepKey]*config{}
	a.words, a.sum = 0, 0
}

// begin starts to collect the threads of a config.
func (a *Automaton) begin() {
	clear(a.seen)
	a.threads, a.ended = a.threads[:0], false
}

// settle returns the config of the threads collected.
func (a *Automaton) settle() (*config, error) {
	if len(a.threads) > maxThreads {
		return nil, ErrAmbiguous
	}
	if len(a.threads) == 0 && !a.ended {
		return dead, nil
	}
	slices.SortFunc(a.threads, thread.compare)
	a.key = a.key[:0]
	for _, t := range a.threads {
		a.key = binary.LittleEndian.AppendUint32(a.key, uint32(t.at))
		a.key = binary.LittleEndian.AppendUint32(a.key, uint32(t.place.state))
		a.key = binary.LittleEndian.AppendUint32(a.key, uint32(t.place.count))
		a.key = binary.LittleEndian.AppendUint32(a.key, uint32(t.stack.number()))
	}
	if a.ended {
		a.key = append(a.key, 1)
	}
	c, ok := a.configs[string(a.key)]
	if !ok {
		if len(a.steps) > maxSteps || a.sum > maxThreadSum || a.words > maxMaskWords {
			a.forget()
		}
		a.lastID++
		c = &config{id: a.lastID, threads: slices.Clone(a.threads), ended: a.ended}
		a.configs[string(a.key)] = c
		a.sum += 1 + len(c.threads)
	}
	return c, nil
}

func (f *frame) number() int32 {
	if f == nil {
		return 0
	}
	return f.id
}

func (t thread) compare(o thread) int {
	return cmp.Or(cmp.Compare(t.at, o.at), cmp.Compare(t.place.state, o.place.state),
		cmp.Compare(t.place.count, o.place.count), cmp.Compare(t.stack.number(), o.stack.number()))
}

// push returns the frame of a call.
func (a *Automaton) push(up *frame, out State) *frame {
	k := frameKey{up, out}
	f, ok := a.frames[k]
	if !ok {
		a.lastID++
		f = &frame{id: a.lastID, up: up, out: out, depth: up.height() + 1}
		a.frames[k] = f
	}
	return f
}

func (f *frame) height() int32 {
	if f == nil {
		return 0
	}
	return f.depth
}

// enter adds the threads that begin at a state: those that are reached from
// there without reading.
func (a *Automaton) enter(s State, stack *frame) {
	if stack.height()+a.grammar.need[s] > MaxDepth || len(a.threads) > maxThreads {
		return
	}
	t := thread{at: s, stack: stack}
	if _, ok := a.seen[t]; ok {
		return
	}
	a.seen[t] = struct{}{}
	switch i := &a.grammar.code[s]; i.op {
	case opReturn:
		if stack == nil {
			a.ended = true
			return
		}
		a.enter(stack.out, stack.up)
	case opSplit:
		for _, out := range i.outs {
			a.enter(out, stack)
		}
	case opCall:
		a.enter(a.grammar.rules[i.arg], a.push(stack, i.out))
	case opLexeme:
		l := a.grammar.lexemes[i.arg]
		t.place = l.start()
		a.threads = append(a.threads, t)
		if l.accepts(t.place) {
			a.enter(i.out, stack)
		}
	default:
		a.threads = append(a.threads, t)
	}
}

// step returns the config after one more byte or control.
func (a *Automaton) step(c *config, symbol int32) (*config, error) {
	k := stepKey{c.id, symbol}
	if next, ok := a.steps[k]; ok {
		return next, nil
	}
	a.begin()
	for _, t := range c.threads {
		i := &a.grammar.code[t.at]
		switch {
		case i.op == opBytes && symbol >= int32(i.lo) && symbol <= int32(i.hi):
			a.enter(i.out, t.stack)
		case i.op == opControl && symbol == firstControl+i.arg:
			a.enter(i.out, t.stack)
		case i.op == opLexeme && symbol < firstControl:
			a.stepLexeme(t, byte(symbol))
		}
	}
	next, err := a.settle()
	if err != nil {
		return nil, err
	}
	a.steps[k] = next
	return next, nil
}

func (a *Automaton) stepLexeme(t thread, b byte) {
	i := &a.grammar.code[t.at]
	l := a.grammar.lexemes[i.arg]
	p, ok := l.step(t.place, b)
	if !ok {
		return
	}
	t.place = p
	if _, ok := a.seen[t]; ok {
		return
	}
	a.seen[t] = struct{}{}
	if l.goesOn(p) {
		a.threads = append(a.threads, t)
	}
	if l.accepts(p) {
		a.enter(i.out, t.stack)
	}
}
