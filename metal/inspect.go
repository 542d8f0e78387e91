package metal

import (
	"encoding/binary"

	"calla/core/tensor"
)

// Recurrent returns a copy of a delta-net layer's recurrent state, [value heads,
// value dim, key dim]. It and the three below are for comparison with other
// implementations.
func (s *State) Recurrent(layer int) []float32 {
	s.weights.ring.drain()
	size := s.weights.shapes.recurrentBytes()
	at := s.weights.layers[layer].index * size
	return floats(s.fetch(s.recurrent.at(int64(at)), size))
}

// Conv returns a delta-net layer's conv state, [taps-1, channels], the oldest
// row first.
func (s *State) Conv(layer int) []float32 {
	s.weights.ring.drain()
	size := s.weights.shapes.convBytes()
	return widen(s.fetch(s.conv.at(int64(s.weights.layers[layer].index*size)), size))
}

// fetch copies what the driver has; a driver that cannot ends the comparison.
func (s *State) fetch(from Binding, bytes int) []byte {
	b, err := fetch(s.weights.device.driver, from, int64(bytes))
	if err != nil {
		panic(err)
	}
	return b
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
	cache := s.fetch(s.kv[s.weights.layers[layer].index].at(0), s.length*a.tokenBytes())
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
