package cpu

import (
	"errors"
	"fmt"

	"calla/core/backend"
)

// snapshot owns a copy of a state's recurrent and conv state.
type snapshot struct {
	weights *weights
	length  int
	memory  region
}

var _ backend.Snapshot = (*snapshot)(nil)

// Save implements backend.State.
func (s *State) Save() (backend.Snapshot, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	memory, err := newRegion(len(s.memory.bytes))
	if err != nil {
		return nil, err
	}
	copy(memory.bytes, s.memory.bytes)
	return &snapshot{s.weights, s.length, memory}, nil
}

// Restore implements backend.State.
func (s *State) Restore(from backend.Snapshot) error {
	f := from.(*snapshot)
	if f.weights != s.weights {
		panic("cpu: Restore of a snapshot of different weights")
	}
	if f.memory.bytes == nil {
		panic("cpu: Restore of a closed snapshot")
	}
	if s.broken != nil {
		return s.broken
	}
	if f.length > s.kv.tokens {
		return fmt.Errorf("cpu: restore to %d tokens, but the KV cache holds %d", f.length, s.kv.tokens)
	}
	copy(s.memory.bytes, f.memory.bytes)
	s.length, s.torn, s.next = f.length, false, -1
	return s.kv.cut(f.length)
}

// usable says why a state can't go on.
func (s *State) usable() error {
	if s.broken != nil {
		return s.broken
	}
	if s.torn {
		return errors.New("cpu: the state has another's KV cache and no recurrent state to it: restore or reset it")
	}
	return nil
}

// Len implements backend.Snapshot.
func (s *snapshot) Len() int { return s.length }

// Bytes implements backend.Snapshot.
func (s *snapshot) Bytes() int64 { return int64(len(s.memory.bytes)) }

// Close implements backend.Snapshot.
func (s *snapshot) Close() error { return s.memory.free() }
