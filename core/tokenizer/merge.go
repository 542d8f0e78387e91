package tokenizer

import (
	"slices"
	"sync"
)

// symbol is a token of a piece while it is merged. Symbols are linked, so that
// a merge costs the same wherever it is; a merged one keeps the place of its
// first byte.
type symbol struct {
	id         int32
	rank       int32 // of the pair it makes with the next one
	prev, next int32 // -1 at the ends
}

// merger is the working memory of appendMerged.
type merger struct {
	symbols []symbol
	queue   pairQueue
}

var mergers = sync.Pool{New: func() any { return new(merger) }}

// keptSymbols bounds what a merger keeps for the next piece: a piece of that
// many bytes is rare.
const keptSymbols = 1 << 14

// appendMerged appends the tokens of one piece: its bytes, of which the pair of
// the lowest rank is joined again and again, the leftmost first. A queue of the
// pairs makes that n log n.
func (t *mergeTable) appendMerged(ids []int32, piece string, ofByte *[256]int32) []int32 {
	m := mergers.Get().(*merger)
	m.start(t, piece, ofByte)
	for len(m.queue) > 0 {
		rank, at := m.queue.pop()
		// A pair that one of the two has left since is stale.
		if m.symbols[at].rank == rank {
			m.join(t, at)
		}
	}
	for at := int32(0); at >= 0; at = m.symbols[at].next {
		ids = append(ids, m.symbols[at].id)
	}
	if cap(m.symbols) <= keptSymbols {
		mergers.Put(m)
	}
	return ids
}

// start links the bytes of a piece and queues their pairs.
func (m *merger) start(t *mergeTable, piece string, ofByte *[256]int32) {
	m.symbols = slices.Grow(m.symbols[:0], len(piece))
	m.queue = slices.Grow(m.queue[:0], len(piece))
	for i := range len(piece) {
		at := int32(i)
		m.symbols = append(m.symbols, symbol{ofByte[piece[i]], noMerge, at - 1, at + 1})
	}
	m.symbols[len(piece)-1].next = -1
	for at := range int32(len(piece) - 1) {
		m.rate(t, at)
	}
}

// rate ranks the pair that begins at a symbol, and queues it.
func (m *merger) rate(t *mergeTable, at int32) {
	s := &m.symbols[at]
	s.rank = noMerge
	if s.next < 0 {
		return
	}
	if s.rank = t.rank(s.id, m.symbols[s.next].id); s.rank != noMerge {
		m.queue.push(s.rank, at)
	}
}

// join merges the symbol at a place with the next one.
func (m *merger) join(t *mergeTable, at int32) {
	s := &m.symbols[at]
	gone := &m.symbols[s.next]
	s.id, s.next = t.made[s.rank], gone.next
	gone.rank = noMerge
	if s.next >= 0 {
		m.symbols[s.next].prev = at
	}
	m.rate(t, at)
	if s.prev >= 0 {
		m.rate(t, s.prev)
	}
}

// pairQueue is a binary heap of pairs, lowest rank first, then leftmost. An
// entry is rank<<32 | place.
type pairQueue []uint64

func (q *pairQueue) push(rank, at int32) {
	h := append(*q, uint64(rank)<<32|uint64(at))
	*q = h
	i := len(h) - 1
	for entry := h[i]; i > 0; {
		up := (i - 1) / 2
		if h[up] <= entry {
			break
		}
		h[i], h[up] = h[up], entry
		i = up
	}
}

// pop removes the first pair of a queue that is not empty.
func (q *pairQueue) pop() (rank, at int32) {
	h := *q
	first, entry := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	*q = h
	i := 0
	for {
		down := 2*i + 1
		if down+1 < len(h) && h[down+1] < h[down] {
			down++
		}
		if down >= len(h) || h[down] >= entry {
			break
		}
		h[i] = h[down]
		i = down
	}
	if len(h) > 0 {
		h[i] = entry
	}
	return int32(first >> 32), int32(first & 0xFFFFFFFF)
}
