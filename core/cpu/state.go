package cpu

import (
	"fmt"

	"calla/core/backend"
)

// State is one session's KV cache, recurrent state and conv state.
//
// Invariants:
//   - kv.tokens == length, except within a pass;
//   - recurrent and conv hold what is true after length tokens, except where
//     torn: after a CopyKV they belong to other tokens;
//   - next is the token of the last call's largest logit, -1 where there is
//     none.
type State struct {
	weights  *weights
	length   int
	capacity int
	torn     bool
	broken   error
	open     bool // a pass is under way
	next     int32

	memory    region    // of the two below
	recurrent []float32 // [delta layers, value heads, value dim, key dim]
	conv      []byte    // cells [delta layers, taps-1, conv dim]
	kv        kvCache
}

var _ backend.State = (*State)(nil)

// NewState implements backend.Weights.
func (w *weights) NewState(maxTokens int) (backend.State, error) {
	s := &State{
		weights:  w,
		capacity: maxTokens,
		next:     -1,
		kv: kvCache{
			layers: w.dims.fullLayers, heads: w.config.KVHeads, dim: w.config.HeadDim,
			rounding: w.device.options.Rounding,
		},
	}
	recurrent, conv := w.recurrentBytes(), w.convBytes()
	memory, err := newRegion(recurrent + conv)
	if err != nil {
		return nil, err
	}
	s.memory = memory
	s.recurrent, s.conv = region{memory.bytes[:recurrent]}.floats(), memory.bytes[recurrent:]
	return s, nil
}

func (w *weights) recurrentBytes() int { return 4 * w.dims.deltaLayers * w.dims.recurrent }

func (w *weights) convBytes() int {
	return w.dims.deltaLayers * (w.config.ConvTaps - 1) * w.dims.conv * w.device.options.Rounding.cell()
}

// Len implements backend.State.
func (s *State) Len() int { return s.length }

// Cap implements backend.State.
func (s *State) Cap() int { return s.capacity }

// Bytes implements backend.State.
func (s *State) Bytes() int64 { return int64(len(s.memory.bytes)) + s.kv.bytes() }

// Reset implements backend.State.
func (s *State) Reset() {
	clear(s.memory.bytes)
	s.length, s.torn, s.next = 0, false, -1
	if err := s.kv.cut(0); err != nil {
		s.broken = err
	}
}

// CopyKV implements backend.State.
func (s *State) CopyKV(from backend.State, n int) error {
	f := from.(*State)
	if f.weights != s.weights {
		panic("cpu: CopyKV between states of different weights")
	}
	if n < 0 || n > f.kv.tokens || n > s.capacity {
		return fmt.Errorf("cpu: copy of %d tokens from a state of %d into one for %d", n, f.kv.tokens, s.capacity)
	}
	var err error
	if f == s {
		err = s.kv.cut(n)
	} else {
		err = s.kv.copy(&f.kv, n)
	}
	s.length, s.torn, s.next = n, true, -1
	if err != nil {
		s.broken = err
	}
	return err
}

// Close implements backend.State.
func (s *State) Close() error {
	err := s.kv.cut(0)
	s.recurrent, s.conv = nil, nil
	s.length, s.capacity = 0, 0
	if e := s.memory.free(); err == nil {
		err = e
	}
	return err
}

// Recurrent returns a copy of a delta-net layer's recurrent state, [value heads,
// value dim, key dim]. It and the three below are for comparison with other
// implementations.
func (s *State) Recurrent(layer int) []float32 {
	n := s.weights.dims.recurrent
	return append([]float32(nil), s.recurrent[s.weights.layers[layer].index*n:][:n]...)
}

// Conv returns a delta-net layer's conv state, [taps-1, channels], the oldest
// row first.
func (s *State) Conv(layer int) []float32 {
	out := make([]float32, (s.weights.config.ConvTaps-1)*s.weights.dims.conv)
	s.kv.rounding.unpack(out, s.convOf(s.weights.layers[layer].index))
	return out
}

// convOf returns the cells of delta-net layer index.
func (s *State) convOf(index int) []byte {
	n := len(s.conv) / s.weights.dims.deltaLayers
	return s.conv[index*n : (index+1)*n]
}

// Keys returns a full-attention layer's keys, [KV heads, tokens, head dim].
func (s *State) Keys(layer int) []float32 {
	k, _ := s.keysAndValues(layer)
	return k
}

// Values returns a full-attention layer's values, [KV heads, tokens, head dim].
func (s *State) Values(layer int) []float32 {
	_, v := s.keysAndValues(layer)
	return v
}

func (s *State) keysAndValues(layer int) (k, v []float32) {
	index, c := s.weights.layers[layer].index, &s.kv
	k, v = make([]float32, c.heads*c.tokens*c.dim), make([]float32, c.heads*c.tokens*c.dim)
	for h := range c.heads {
		for t := range c.tokens {
			keys, values := c.cells(index, h, t, t+1)
			at := (h*c.tokens + t) * c.dim
			c.rounding.unpack(k[at:at+c.dim], keys)
			c.rounding.unpack(v[at:at+c.dim], values)
		}
	}
	return k, v
}
