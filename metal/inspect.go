package metal

import (
	"encoding/binary"
	"slices"

	"calla/core/tensor"
)

// Recurrent returns a copy of a delta-net layer's recurrent state, [value heads,
// value dim, key dim]. It and the three below are for comparison with other
// implementations.
func (s *State) Recurrent(layer int) []float32 {
	s.weights.ring.drain()
	size := s.weights.shapes.recurrentBytes()
	at := s.weights.layers[layer].index * size
	return slices.Clone(floats(s.recurrent.Bytes[at : at+size]))
}

// Conv returns a delta-net layer's conv state, [taps-1, channels], the oldest
// row first.
func (s *State) Conv(layer int) []float32 {
	s.weights.ring.drain()
	size := s.weights.shapes.convBytes()
	return widen(s.conv.Bytes[s.weights.layers[layer].index*size:][:size])
}

// Keys returns a full-attention layer's keys, [KV heads, tokens, head dim].
func (s *State) Keys(layer int) []float32 { return s.cached(layer, 0) }

// Values returns a full-attention layer's values, [KV heads, tokens, head dim].
func (s *State) Values(layer int) []float32 { return s.cached(layer, 1) }

func (s *State) cached(layer, half int) []float32 {
	s.weights.ring.drain()
	a := s.weights.shapes.attention
	out := []float32{}
	if s.length == 0 {
		return out
	}
	cache := s.kv[s.weights.layers[layer].index].Bytes
	for h := range a.KVHeads {
		for t := range s.length {
			at := t*a.tokenBytes() + (half*a.KVHeads+h)*a.Dim*2
			out = append(out, widen(cache[at:at+2*a.Dim])...)
		}
	}
	return out
}

// widen returns bfloat16 values as float32.
func widen(b []byte) []float32 {
	out := make([]float32, len(b)/2)
	for i := range out {
		out[i] = tensor.FromBF16(binary.LittleEndian.Uint16(b[2*i:]))
	}
	return out
}
