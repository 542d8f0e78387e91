package tokenizer

import (
	"hash/maphash"
	"slices"
	"strings"
	"sync/atomic"
)

const (
	// maxCachedWord is the longest piece, in bytes, that is cached.
	maxCachedWord = 32
	// cachedWords bounds the cache: with the longest pieces, one token a byte,
	// it holds less than 4 MB.
	cachedWords = 1 << 14
)

// wordCache remembers the tokens of pieces. A piece has one slot, found by its
// hash, and the newest piece of a slot wins; no lock is needed.
type wordCache struct {
	seed  maphash.Seed
	slots []atomic.Pointer[cachedWord] // cachedWords of them
}

// cachedWord never changes once it is in a slot.
type cachedWord struct {
	text string
	ids  []int32
}

func newWordCache() wordCache {
	return wordCache{
		seed:  maphash.MakeSeed(),
		slots: make([]atomic.Pointer[cachedWord], cachedWords),
	}
}

// newCachedWord copies both parts: they point into a caller's text and result.
func newCachedWord(piece string, ids []int32) *cachedWord {
	return &cachedWord{text: strings.Clone(piece), ids: slices.Clone(ids)}
}

func (c *wordCache) slot(piece string) *atomic.Pointer[cachedWord] {
	return &c.slots[maphash.String(c.seed, piece)%cachedWords]
}
