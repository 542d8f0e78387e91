package grammar

import "calla/core/grammar/dfa"

// local is what a place in a lexeme says of the tokens, whatever comes after
// the lexeme.
type local struct {
	// stay are the tokens that lead to another place of the lexeme.
	stay tokenSet
	// leave are the nodes of the trie at which the lexeme may end, and which
	// tokens go on from.
	leave []int32
}

// localKey names a place, for all that are alike.
type localKey struct {
	bytes *dfa.Bytes
	at    place
}

// localCache keeps what was found out about places. When it is full it begins
// again: a grammar in use soon has its own back.
type localCache struct {
	found map[localKey]*local
	size  int // words of memory, about
	marks Mask
	path  []place
}

// maxLocalWords bounds the cache: 32 MiB.
const maxLocalWords = 1 << 22

// local returns what a place says of the tokens.
func (v *Vocabulary) local(l *Lexeme, p place) *local {
	c := &v.locals
	k := localKey{l.bytes, l.alike(p, v.deepest)}
	if found, ok := c.found[k]; ok {
		return found
	}
	found := v.explore(l, p)
	if c.found == nil || c.size > maxLocalWords {
		c.found, c.size = map[localKey]*local{}, 0
	}
	c.found[k] = found
	c.size += len(found.stay.many) + (len(found.stay.few)+len(found.leave))/2 + 16
	return found
}

// explore walks the trie with a lexeme alone.
func (v *Vocabulary) explore(l *Lexeme, p place) *local {
	c := &v.locals
	if c.marks == nil {
		c.marks, c.path = NewMask(v.tokens), make([]place, v.deepest+1)
	}
	clear(c.marks)
	found := &local{}
	c.path[0] = p
	for node := int32(1); int(node) < len(v.label); {
		depth := v.depth[node]
		next, ok := l.step(c.path[depth-1], v.label[node])
		if !ok {
			node = v.after[node]
			continue
		}
		c.path[depth] = next
		for _, t := range v.tokensAt(node) {
			c.marks.Add(t)
		}
		if v.after[node] > node+1 && l.accepts(next) {
			found.leave = append(found.leave, node)
		}
		node++
	}
	found.stay = kept(c.marks)
	return found
}
