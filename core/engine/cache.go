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

func newPrefixCache(entries int, budget int64) *prefixCache {
	// The library's own limit never bites: what must go is chosen in makeRoom.
	l, err := lru.NewLRU[*entry, struct{}](entries+1, nil)
	if err != nil {
		panic("engine: " + err.Error())
	}
	return &prefixCache{lru: l, entries: entries, budget: budget}
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

// commonPrefix returns how many tokens a and b share at their beginning.
func commonPrefix(a, b []int32) int {
	// Blocks are compared as memory.
	const block = 64
	n, i := min(len(a), len(b)), 0
	for i+block <= n && [block]int32(a[i:]) == [block]int32(b[i:]) {
		i += block
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
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
