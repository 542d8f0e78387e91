package engine

// The reasons of a CacheMiss.
const (
	// MissChanged: the prompt differs from the cached sequence at Position.
	MissChanged MissReason = "changed"
	// MissEvicted: the sequence made room for others.
	MissEvicted MissReason = "evicted"
)

// expected is how many tokens a prompt must share with a cached sequence,
// behind what it reused, before a hit could have been expected: more than the
// template alone puts at the head of every prompt.
const expected = 16

// explain says why a prompt that shares common tokens with e reuses only the
// first reused of its n tokens, or returns nil where no more was to be had.
func explain(e *entry, reused, common, n int, key string) *CacheMiss {
	if len(e.snaps) == 0 {
		return nil
	}
	last := e.snaps[len(e.snaps)-1].Len()
	if last <= reused || common >= last || common == n {
		return nil // all of it was reused, or the prompt ends within it
	}
	if sameKey := key != "" && e.key == key; !sameKey && common-reused < expected {
		return nil
	}
	return &CacheMiss{Reason: MissChanged, Position: common}
}

// evictions remembers how the sequences that had to go began.
type evictions struct {
	heads [16]struct {
		key    string
		tokens []int32
	}
	next int
}

func (v *evictions) add(e *entry) {
	h := &v.heads[v.next%len(v.heads)]
	v.next++
	h.key = e.key
	h.tokens = append(h.tokens[:0], e.tokens[:min(len(e.tokens), 4*expected)]...)
}

// forget drops what is cached again.
func (v *evictions) forget(e *entry) {
	for i := range v.heads {
		if h := &v.heads[i]; h.key == e.key && commonPrefix(h.tokens, e.tokens) == len(h.tokens) {
			h.key, h.tokens = "", h.tokens[:0]
		}
	}
}

// explain tells of a prompt that reuses only its first reused tokens, though a
// sequence that began like it, or one of its conversation, was cached.
func (v *evictions) explain(prompt []int32, key string, reused int) *CacheMiss {
	for _, h := range v.heads {
		n := len(h.tokens)
		if n == 0 {
			continue
		}
		common := commonPrefix(h.tokens, prompt)
		sameTalk := key != "" && h.key == key && common > 0
		if sameTalk || reused == 0 && n >= expected && common == n {
			return &CacheMiss{Reason: MissEvicted, Position: reused}
		}
	}
	return nil
}
