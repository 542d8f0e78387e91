package engine

import "calla/core/backend"

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
