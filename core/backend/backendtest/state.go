package backendtest

import (
	"fmt"
	"slices"

	"calla/core/backend"
)

// state holds one cumulative hash a token, as a KV cache would, and one hash
// of all of them, as a recurrent state would.
type state struct {
	d         *Device
	max       int
	tokens    []int32
	kv        []uint64
	recurrent uint64
	last      *step // whose token may be followed
	closed    bool
}

func mix(h uint64, xs ...uint64) uint64 {
	for _, x := range xs {
		h ^= x + 0x9e3779b97f4a7c15 + h<<6 + h>>2
		h *= 0xff51afd7ed558ccd
		h ^= h >> 33
	}
	return h
}

func (s *state) Len() int { return len(s.kv) }
func (s *state) Cap() int { return s.max }
func (s *state) Reset()   { s.tokens, s.kv, s.recurrent, s.last = nil, nil, 0, nil }

// The memory that a model of Config would need.
const (
	kvBytes        = 1 * 2 * 2 * 256 * 2 // a token
	recurrentBytes = 3 * (32*128*128*4 + 3*8192*2)
)

func (s *state) Bytes() int64 { return int64(len(s.kv))*kvBytes + recurrentBytes }

func (s *state) Close() error {
	if s.closed {
		panic("backendtest: state closed twice")
	}
	s.closed = true
	s.d.count(func(c *Counts) { c.States-- })
	return nil
}

func (s *state) Save() (backend.Snapshot, error) {
	if err := s.d.fault(Save); err != nil {
		return nil, err
	}
	s.d.count(func(c *Counts) { c.Snapshots++; c.MostSnapshots = max(c.MostSnapshots, c.Snapshots) })
	return &snapshot{d: s.d, n: len(s.kv), recurrent: s.recurrent}, nil
}

func (s *state) Restore(x backend.Snapshot) error {
	if x.(*snapshot).closed {
		panic("backendtest: restore of a closed snapshot")
	}
	if err := s.d.fault(Restore); err != nil {
		return err
	}
	n := x.Len()
	if n > len(s.kv) {
		return fmt.Errorf("backendtest: restore of %d tokens into a KV cache of %d", n, len(s.kv))
	}
	s.tokens, s.kv, s.recurrent, s.last = s.tokens[:n], s.kv[:n], x.(*snapshot).recurrent, nil
	return nil
}

func (s *state) CopyKV(from backend.State, n int) error {
	if err := s.d.fault(CopyKV); err != nil {
		return err
	}
	f := from.(*state)
	s.tokens, s.kv, s.recurrent = slices.Clone(f.tokens[:n]), slices.Clone(f.kv[:n]), 0xbad
	s.last = nil
	return nil
}

type snapshot struct {
	d         *Device
	n         int
	recurrent uint64
	closed    bool
}

func (s *snapshot) Len() int     { return s.n }
func (s *snapshot) Bytes() int64 { return recurrentBytes }

func (s *snapshot) Close() error {
	if s.closed {
		panic("backendtest: snapshot closed twice")
	}
	s.closed = true
	s.d.count(func(c *Counts) { c.Snapshots-- })
	return nil
}

// logits makes the logits of the last row: small numbers from the hashes, and
// a large one for the scripted token.
func (s *state) logits() []float32 {
	h := mix(s.recurrent, s.kv[len(s.kv)-1])
	out := make([]float32, s.d.Vocab)
	for i := range out {
		out[i] = float32(mix(h, uint64(i))>>40) / (1 << 24) // [0, 1)
	}
	if s.d.Next != nil {
		out[s.d.Next(s.tokens)] += 32
	}
	if s.d.Logits != nil {
		s.d.Logits(s.tokens, out)
	}
	return out
}
