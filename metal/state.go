package metal

import (
	"errors"
	"fmt"

	"calla/core/backend"
)

// kvStep is by how many tokens at least the KV cache grows. Blocks of keys that
// attention reads lie on a finer grid, so none reaches beyond the cache.
const kvStep = 1024

// State is one session's KV cache, recurrent state and conv state.
//
// Invariants:
//   - recurrent and conv hold what is true after length tokens, once all steps
//     are done, except where torn: after a CopyKV they belong to other tokens;
//   - each buffer of kv holds room tokens, at least length;
//   - last is the state's last step, nil where its token is not to be followed.
type State struct {
	weights  *weights
	length   int
	capacity int
	torn     bool
	broken   error
	open     bool // a pass is under way
	last     *step

	recurrent *Buffer   // float32 [delta layers, value heads, value dim, key dim]
	conv      *Buffer   // bfloat16 [delta layers, taps-1, channels]
	kv        []*Buffer // a full-attention layer each: [room, 2, KV heads, head dim]
	room      int
}

var _ backend.State = (*State)(nil)

// NewState implements backend.Weights.
func (w *weights) NewState(maxTokens int) (backend.State, error) {
	s := &State{weights: w, capacity: maxTokens}
	d, layers := w.device.driver, max(1, w.shapes.deltaLayers)
	var err error
	if s.recurrent, err = newPrivate(d, "recurrent", int64(layers*w.shapes.recurrentBytes())); err != nil {
		return nil, err
	}
	if s.conv, err = newPrivate(d, "conv", int64(layers*w.shapes.convBytes())); err != nil {
		d.Free(s.recurrent)
		return nil, err
	}
	if err := s.forget(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Len implements backend.State.
func (s *State) Len() int { return s.length }

// Cap implements backend.State.
func (s *State) Cap() int { return s.capacity }

// Bytes implements backend.State.
func (s *State) Bytes() int64 {
	return s.recurrent.Size + s.conv.Size + int64(len(s.kv)*s.room*s.weights.shapes.attention.tokenBytes())
}

// Reset implements backend.State.
func (s *State) Reset() {
	s.settle()
	s.length, s.torn = 0, false
	s.broken = s.forget()
	s.dropKV()
}

// forget brings the recurrent and the conv state to the start of a sequence.
func (s *State) forget() error {
	d := s.weights.device.driver
	if err := zero(d, s.recurrent); err != nil {
		return err
	}
	return zero(d, s.conv)
}

// CopyKV implements backend.State.
func (s *State) CopyKV(from backend.State, n int) error {
	f := from.(*State)
	if f.weights != s.weights {
		panic("metal: CopyKV between states of different weights")
	}
	if n < 0 || n > f.length || n > s.capacity {
		return fmt.Errorf("metal: copy of %d tokens from a state of %d into one for %d", n, f.length, s.capacity)
	}
	s.settle()
	if f.broken != nil {
		return f.broken
	}
	if f != s {
		s.dropKV()
		if err := s.grow(n); err != nil {
			return err
		}
		for i, b := range s.kv {
			bytes := int64(n * s.weights.shapes.attention.tokenBytes())
			if err := copyBytes(s.weights.device.driver, b.at(0), f.kv[i].at(0), bytes); err != nil {
				s.broken = err
				return err
			}
		}
	}
	s.length, s.torn = n, true
	return nil
}

// settle waits for all steps; what they were to hand on is gone.
func (s *State) settle() {
	s.weights.ring.drain()
	s.last = nil
}

// grow makes room for tokens tokens in the KV cache: a quarter more than there
// was, so that copies stay rare.
func (s *State) grow(tokens int) error {
	if tokens <= s.room {
		return nil
	}
	s.weights.ring.drain()
	w := s.weights
	most := align(s.capacity, kvStep)
	room := align(min(most, max(tokens, s.room+s.room/4)), kvStep)
	if len(s.kv) == 0 {
		s.kv = make([]*Buffer, w.shapes.fullLayers)
	}
	for i, old := range s.kv {
		b, err := s.moved(old, fmt.Sprintf("kv%d", i), int64(room*w.shapes.attention.tokenBytes()))
		if err != nil {
			s.dropKV()
			s.broken = err
			return err
		}
		s.kv[i] = b
	}
	s.room = room
	return nil
}

// moved returns a larger buffer with what there is of the KV cache in old, which
// it frees where there is one.
func (s *State) moved(old *Buffer, name string, bytes int64) (*Buffer, error) {
	d := s.weights.device.driver
	b, err := newPrivate(d, name, bytes)
	if err != nil || old == nil {
		return b, err
	}
	if err := copyBytes(d, b.at(0), old.at(0), int64(s.length*s.weights.shapes.attention.tokenBytes())); err != nil {
		d.Free(b)
		return nil, err
	}
	d.Free(old)
	return b, nil
}

func (s *State) dropKV() {
	for _, b := range s.kv {
		if b != nil {
			s.weights.device.driver.Free(b)
		}
	}
	s.kv, s.room = nil, 0
}

// usable says why a state can't go on.
func (s *State) usable() error {
	if s.broken != nil {
		return s.broken
	}
	if s.torn {
		return errors.New("metal: the state has another's KV cache and no recurrent state to it: restore or reset it")
	}
	return nil
}

// Close implements backend.State.
func (s *State) Close() error {
	err := s.weights.ring.drain()
	s.dropKV()
	s.weights.device.driver.Free(s.recurrent)
	s.weights.device.driver.Free(s.conv)
	s.length, s.capacity = 0, 0
	return err
}
