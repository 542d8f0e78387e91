package engine

import (
	"slices"

	lru "github.com/hashicorp/golang-lru/v2/simplelru"

	"calla/core/backend"
)

// prefixCache keeps the states of sequences that were evaluated, so that a
// prompt which begins like one of them need not be evaluated from the start.
//
// Invariants:
//   - an entry's tokens were all evaluated by prefill, never by decode;
//   - a snapshot of an entry holds the state after exactly that many of its
//     tokens, on the grid of those tokens;
//   - a session that runs has taken its entry out of the cache;
//   - the bytes of all entries sum to at most budget, their number to at most
//     entries.
type prefixCache struct {
	lru     *lru.LRU[*entry, struct{}] // oldest first; eviction is ours, by worth
	entries int
	budget  int64

	// clock rises with each eviction to the worth of what went, so that an
	// entry's worth fades as others come and go (greedy dual).
	clock int
	gone  evictions
}

// entry is a cached sequence. Its KV cache holds at least tokens; what lies
// behind them is of no use. The tokens behind the last snapshot tell where a
// prompt parts from the sequence.
type entry struct {
	key    string
	tokens []int32
	snaps  []snapshot // by rising length
	state  backend.State
	worth  int // clock at its last use + tokens to rebuild it
}

// snapshot is shared by the entries that branched off behind it.
type snapshot struct {
	backend.Snapshot
	refs *int
}

func newSnapshot(s backend.Snapshot) snapshot {
	n := 1
	return snapshot{s, &n}
}

func (s snapshot) share() snapshot {
	*s.refs++
	return s
}

func (s snapshot) release() {
	if *s.refs--; *s.refs == 0 {
		s.Close()
	}
}

func newPrefixCache(entries int, budget int64) *prefixCache {
	// The library's own limit never bites: what must go is chosen in makeRoom.
	l, err := lru.NewLRU[*entry, struct{}](entries+1, nil)
	if err != nil {
		panic("engine: " + err.Error())
	}
	return &prefixCache{lru: l, entries: entries, budget: budget}
}

func (e *entry) bytes() int64 {
	n := e.state.Bytes()
	for _, s := range e.snaps {
		n += s.Bytes()
	}
	return n
}

// cut drops what lies behind the first n tokens.
func (e *entry) cut(n int) {
	e.tokens = e.tokens[:min(n, len(e.tokens))]
	for len(e.snaps) > 0 && e.snaps[len(e.snaps)-1].Len() > n {
		e.snaps[len(e.snaps)-1].release()
		e.snaps = e.snaps[:len(e.snaps)-1]
	}
}

// close gives the entry's memory back.
func (e *entry) close() {
	e.cut(0)
	e.state.Close()
}

// hit is the best start the cache has for a prompt.
type hit struct {
	entry  *entry // nil: none
	length int    // tokens that need not be evaluated
	miss   *CacheMiss
}

// find looks for the longest snapshot whose tokens are a strict prefix of
// prompt: at least one token is left, whose logits seed the first sample. Of
// equals the entry with that key wins, then the one used last.
func (c *prefixCache) find(prompt []int32, g grid, key string) hit {
	var best, near hit
	nearPrefix := -1
	for _, e := range c.lru.Keys() {
		common := commonPrefix(e.tokens, prompt)
		h := hit{entry: e, length: e.longest(min(common, len(prompt)-1), g)}
		if h.length > 0 && (h.length > best.length || h.length == best.length && (e.key == key || best.entry.key != key)) {
			best = h
		}
		if common > nearPrefix || common == nearPrefix && e.key == key {
			near, nearPrefix = h, common
		}
	}
	if best.length == 0 {
		best.entry = nil
	}
	if near.entry == nil || near.entry.key != key {
		best.miss = c.gone.explain(prompt, key, best.length)
	}
	if best.miss == nil && near.entry != nil {
		best.miss = explain(near.entry, best.length, nearPrefix, len(prompt), key)
	}
	return best
}

// has reports whether a prompt that begins with tokens would hit behind all of
// them.
func (c *prefixCache) has(tokens []int32) bool {
	for _, e := range c.lru.Keys() {
		if commonPrefix(e.tokens, tokens) == len(tokens) && slices.ContainsFunc(e.snaps, func(s snapshot) bool { return s.Len() == len(tokens) }) {
			return true
		}
	}
	return false
}

// longest returns the length of the entry's longest snapshot of at most n
// tokens that lies on g, or 0.
func (e *entry) longest(n int, g grid) int {
	for _, s := range slices.Backward(e.snaps) {
		// An entry's last snapshot may lie behind an end of turn whose newline
		// only this prompt has; there the grids differ.
		if s.Len() <= n && g.isEdge(s.Len()) {
			return s.Len()
		}
	}
	return 0
}

func (e *entry) snapshotAt(n int) snapshot {
	for _, s := range e.snaps {
		if s.Len() == n {
			return s
		}
	}
	panic("engine: no snapshot at a length that find returned")
}

func commonPrefix(a, b []int32) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

// take gives the caller an entry to run a prompt on: its state holds the
// hit's first tokens. The entry is out of the cache until put. NewState makes
// a state when the cache has room for one more.
func (c *prefixCache) take(h hit, key string, newState func() (backend.State, error)) (*entry, error) {
	if h.entry == nil {
		s, err := c.freeState(nil, newState)
		if err != nil {
			return nil, err
		}
		return &entry{key: key, state: s}, nil
	}
	if !c.continues(h) {
		// Without memory for a branch the entry is continued after all.
		if s, err := c.freeState(h.entry, newState); err == nil {
			if e := branch(s, h, key); e != nil {
				return e, nil
			}
		}
	}
	return c.resume(h, key)
}

// resume takes a hit's entry itself and goes back to the end of the hit.
func (c *prefixCache) resume(h hit, key string) (_ *entry, err error) {
	e := h.entry
	c.lru.Remove(e)
	sound := false
	defer func() {
		if !sound {
			e.close()
		}
	}()
	if err := e.state.Restore(e.snapshotAt(h.length).Snapshot); err != nil {
		return nil, err
	}
	sound = true
	if e.key != key {
		c.gone.add(e)
	}
	e.cut(h.length)
	e.key = key
	return e, nil
}

// branch makes an entry of a state and the first tokens of a hit. It returns
// nil where there is no memory for that, and closes the state then.
func branch(s backend.State, h hit, key string) *entry {
	e := &entry{key: key, state: s}
	sound := false
	defer func() {
		if !sound {
			e.close()
		}
	}()
	if s.CopyKV(h.entry.state, h.length) != nil || s.Restore(h.entry.snapshotAt(h.length).Snapshot) != nil {
		return nil
	}
	sound = true
	e.tokens = slices.Clone(h.entry.tokens[:h.length])
	for _, s := range h.entry.snaps {
		if s.Len() <= h.length {
			e.snaps = append(e.snaps, s.share())
		}
	}
	return e
}

// A branch costs as much as evaluating branchCost tokens, and one more for each
// copyShare tokens that it copies.
const (
	branchCost = 64
	copyShare  = 256
)

// continues decides whether a hit's entry is continued in place, which loses
// its tail, or branched, which copies what is shared and costs another entry.
func (c *prefixCache) continues(h hit) bool {
	tail := len(h.entry.tokens) - h.length
	other := branchCost + h.length/copyShare
	if c.lru.Len() >= c.entries {
		v := c.victim(h.entry)
		if v == nil {
			return true
		}
		other += v.worth - c.clock
	}
	return tail <= other
}

// victim returns the entry that is cheapest to lose, other than not; of equals
// the one unused for longest.
func (c *prefixCache) victim(not *entry) *entry {
	var v *entry
	for _, e := range c.lru.Keys() {
		if e != not && (v == nil || e.worth < v.worth) {
			v = e
		}
	}
	return v
}

// freeState returns an empty state: a new one, or, where the cache is full or
// the device out of memory, a victim's.
func (c *prefixCache) freeState(not *entry, newState func() (backend.State, error)) (backend.State, error) {
	var err error
	v := c.victim(not)
	if c.lru.Len() < c.entries || v == nil {
		var s backend.State
		if s, err = newState(); err == nil {
			return s, nil
		}
	}
	if v == nil {
		return nil, err
	}
	c.evict(v)
	v.state.Reset()
	return v.state, nil
}

// evict takes an entry out of the cache and frees its snapshots; its state is
// the caller's.
func (c *prefixCache) evict(v *entry) {
	c.lru.Remove(v)
	c.clock = max(c.clock, v.worth)
	c.gone.add(v)
	v.cut(0)
}

// put gives an entry back. Entries that hold nothing worth keeping only give
// back their memory.
func (c *prefixCache) put(e *entry) {
	if len(e.snaps) == 0 || c.entries == 0 {
		e.close()
		return
	}
	e.worth = c.clock + e.snaps[len(e.snaps)-1].Len()
	c.lru.Add(e, struct{}{})
	c.gone.forget(e)
	for c.lru.Len() > c.entries || c.bytes() > c.budget {
		v := c.victim(nil)
		c.evict(v)
		v.state.Close()
	}
}

func (c *prefixCache) bytes() int64 {
	var n int64
	for _, e := range c.lru.Keys() {
		n += e.bytes()
	}
	return n
}

// drop empties the cache.
func (c *prefixCache) drop() {
	for _, e := range c.lru.Keys() {
		c.lru.Remove(e)
		e.close()
	}
}
