package engine

import (
	"fmt"
	"sort"

	"calla/core/checkpoint"
)

// Memory is what an engine needs at most, in bytes, by part.
type Memory struct {
	Weights   int64
	KV        int64 // KV caches of all entries at the longest context
	Recurrent int64 // recurrent and conv states, live ones and snapshots
	Scratch   int64 // of the largest call, logits included
}

// Total returns the sum of the parts.
func (m Memory) Total() int64 { return m.Weights + m.KV + m.Recurrent + m.Scratch }

// kvBytes returns the KV cache of one token: a bfloat16 key and value in each
// full-attention layer.
func kvBytes(c checkpoint.Config) int64 {
	return int64(fullLayers(c)) * 2 * int64(c.KVHeads) * int64(c.HeadDim) * 2
}

// recurrentBytes returns one recurrent state, float32, and conv state,
// bfloat16, of all delta nets.
func recurrentBytes(c checkpoint.Config) int64 {
	s := int64(c.DeltaValueHeads) * int64(c.DeltaValueDim) * int64(c.DeltaKeyDim) * 4
	conv := int64(c.ConvTaps-1) * int64(c.ConvDim()) * 2
	return int64(c.Layers-fullLayers(c)) * (s + conv)
}

func fullLayers(c checkpoint.Config) int { return c.Layers / c.FullAttentionInterval }

// Memory returns the closed form for a model of that configuration and that
// many bytes of weights. Scratch is the device's (see backend.Device).
func (o Options) Memory(c checkpoint.Config, weights int64, scratch func(rows, maxTokens int) int64) Memory {
	states := int64(max(o.CacheEntries, 1))
	return Memory{
		Weights:   weights,
		KV:        states * kvBytes(c) * int64(o.MaxSeq),
		Recurrent: (int64(o.CacheEntries)*snapshotsPerEntry + states) * recurrentBytes(c),
		// No call has more rows than the context.
		Scratch: scratch(min(o.PrefillChunk, o.MaxSeq), o.MaxSeq),
	}
}

// cacheBudget bounds the bytes of the prefix cache's entries.
func (o Options) cacheBudget(c checkpoint.Config) int64 {
	m := o.Memory(c, 0, func(int, int) int64 { return 0 })
	return m.KV + m.Recurrent
}

// MemoryError is a context that does not fit the memory there is.
type MemoryError struct {
	Need    Memory
	Budget  int64
	MaxSeq  int
	Largest int // the longest context that fits, 0 where none does
}

func (e *MemoryError) Error() string {
	const gib = 1 << 30
	s := fmt.Sprintf("engine: max-seq %d needs %.2f GiB (weights %.2f, KV cache %.2f, states %.2f, scratch %.2f), there are %.2f GiB",
		e.MaxSeq, float64(e.Need.Total())/gib, float64(e.Need.Weights)/gib, float64(e.Need.KV)/gib,
		float64(e.Need.Recurrent)/gib, float64(e.Need.Scratch)/gib, float64(e.Budget)/gib)
	if e.Largest == 0 {
		return s + "; no context fits"
	}
	return fmt.Sprintf("%s; the largest max-seq that fits is %d", s, e.Largest)
}

// Fit returns what the engine will need at most, or a *MemoryError where the
// budget is less. A budget of 0 is unknown, and fits.
func (o Options) Fit(c checkpoint.Config, weights int64, scratch func(rows, maxTokens int) int64, budget int64) (Memory, error) {
	m := o.Memory(c, weights, scratch)
	if budget <= 0 || m.Total() <= budget {
		return m, nil
	}
	e := &MemoryError{Need: m, Budget: budget, MaxSeq: o.MaxSeq}
	// The form rises with max-seq: the first that does not fit is one more
	// than the largest that does.
	e.Largest = sort.Search(o.MaxSeq, func(n int) bool {
		p := o
		p.MaxSeq = n + 1
		return p.Memory(c, weights, scratch).Total() > budget
	})
	return m, e
}
