package grammar

import "calla/core/grammar/dfa"

// local is what a state of a lexeme's automaton says of the tokens, whatever
// comes after the lexeme and however long it may be.
type local struct {
	// stay are the tokens that lead to another state of the automaton.
	stay tokenSet
	// leave are the nodes of the trie at which the lexeme may end, and which
	// tokens go on from.
	leave []leaving

	// What follows is there for lexemes that count alone. Their stay is without
	// the tokens of marking.

	// byLength are the tokens of stay by the characters that they begin: of up
	// to n there are upTo[n].
	byLength []int32
	upTo     []int32
	marking  []marking
}

// leaving is a node at which a lexeme may end, after so many characters that do
// not belong to a mark.
type leaving struct{ node, length int32 }

// marking is a token that ends within or after the mark that may end a text:
// with it, begun characters have come, of which length do not belong to the mark.
type marking struct {
	token, begun, length int32
	ended                bool // the lexeme
}

// localKey names a state.
type localKey struct {
	bytes  *dfa.Bytes
	state  int32
	counts bool
}

// localCache keeps what was found out about states. When it is full it begins
// again: a grammar in use soon has its own back.
type localCache struct {
	found  map[localKey]*local
	size   int // words of memory, about
	marks  Mask
	path   []place // by depth in the trie
	tokens []lengthOfToken
}

type lengthOfToken struct{ token, length int32 }

// maxLocalWords bounds the cache: 32 MiB.
const maxLocalWords = 1 << 22

// local returns what a state of a lexeme says of the tokens.
func (v *Vocabulary) local(l *Lexeme, state int32) *local {
	c := &v.locals
	k := localKey{l.bytes, state, l.counts}
	if found, ok := c.found[k]; ok {
		return found
	}
	if c.found == nil || c.size > maxLocalWords {
		c.found, c.size = map[localKey]*local{}, 0
	}
	found := v.explore(l.bytes, state, l.counts)
	c.found[k] = found
	c.size += len(found.stay.many) + (len(found.stay.few)+len(found.byLength))/2 + len(found.leave) + 16
	return found
}

// explore walks the trie with an automaton alone.
func (v *Vocabulary) explore(b *dfa.Bytes, state int32, counts bool) *local {
	c := &v.locals
	if c.marks == nil {
		c.marks, c.path = NewMask(v.tokens), make([]place, v.deepest+1)
	}
	clear(c.marks)
	c.tokens = c.tokens[:0]
	found := &local{}
	c.path[0] = place{state: state}
	label, depths, after := v.label, v.depth, v.after
	for node := int32(1); int(node) < len(label); {
		depth := depths[node]
		p := c.path[depth-1]
		p.state = b.Next(p.state, label[node])
		if p.state == 0 {
			node = after[node]
			continue
		}
		if counts && b.Between(p.state) {
			p.count++
		}
		c.path[depth] = p
		if tokens := v.tokensAt(node); len(tokens) > 0 {
			if counts {
				c.measure(b, found, tokens, p)
			} else {
				c.add(tokens)
			}
		}
		if after[node] > node+1 && b.Accepts(p.state) {
			found.leave = append(found.leave, leaving{node, p.count - int32(b.Tail(p.state))})
		}
		node++
	}
	found.stay = kept(c.marks)
	if counts {
		found.sort(c.tokens)
	}
	return found
}

func (c *localCache) add(tokens []int32) {
	for _, t := range tokens {
		c.marks.Add(t)
	}
}

// measure notes the length of tokens that lead to a place.
func (c *localCache) measure(b *dfa.Bytes, found *local, tokens []int32, p place) {
	begun := p.count
	accepts := b.Accepts(p.state)
	if !b.Between(p.state) && !accepts {
		begun++
	}
	tail := int32(b.Tail(p.state))
	if tail > 0 || accepts {
		for _, t := range tokens {
			found.marking = append(found.marking, marking{t, begun, p.count - tail, accepts})
		}
		return
	}
	c.add(tokens)
	for _, t := range tokens {
		c.tokens = append(c.tokens, lengthOfToken{t, begun})
	}
}

// sort puts tokens in the order of their lengths.
func (l *local) sort(tokens []lengthOfToken) {
	longest := int32(0)
	for _, t := range tokens {
		longest = max(longest, t.length)
	}
	l.upTo = make([]int32, longest+2)
	for _, t := range tokens {
		l.upTo[t.length+1]++
	}
	for i := range longest + 1 {
		l.upTo[i+1] += l.upTo[i]
	}
	l.byLength = make([]int32, len(tokens))
	for _, t := range tokens { // moves each start to the next one's
		l.byLength[l.upTo[t.length]] = t.token
		l.upTo[t.length]++
	}
	l.upTo = l.upTo[:longest+1]
}

// addTo adds to a mask the tokens that stay in a lexeme which has counted so
// many characters.
func (l *local) addTo(m Mask, x *Lexeme, count int) {
	if !x.counts {
		l.stay.addTo(m)
		return
	}
	if room := x.max - count; x.max < 0 || room >= len(l.upTo)-1 {
		l.stay.addTo(m)
	} else if room >= 0 {
		for _, t := range l.byLength[:l.upTo[room]] {
			m.Add(t)
		}
	}
	for _, t := range l.marking {
		fits := !t.ended && (x.max < 0 || count+int(t.begun) <= x.max)
		if fits || x.admits(count+int(t.length)) {
			m.Add(t.token)
		}
	}
}
