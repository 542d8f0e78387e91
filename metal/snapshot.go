package metal

import (
	"fmt"

	"calla/core/backend"
)

// snapshot owns a copy of a state's recurrent and conv state, in memory that the
// device does not see.
type snapshot struct {
	weights         *weights
	length          int
	recurrent, conv []byte
}

var _ backend.Snapshot = (*snapshot)(nil)

// Save implements backend.State.
func (s *State) Save() (backend.Snapshot, error) {
	if err := s.weights.ring.drain(); err != nil && s.broken == nil {
		s.broken = err
	}
	if err := s.usable(); err != nil {
		return nil, err
	}
	return &snapshot{
		s.weights, s.length,
		append([]byte(nil), s.recurrent.Bytes...), append([]byte(nil), s.conv.Bytes...),
	}, nil
}

// Restore implements backend.State.
func (s *State) Restore(from backend.Snapshot) error {
	f := from.(*snapshot)
	if f.weights != s.weights {
		panic("metal: Restore of a snapshot of different weights")
	}
	if f.recurrent == nil {
		panic("metal: Restore of a closed snapshot")
	}
	if s.broken != nil {
		return s.broken
	}
	if f.length > s.length {
		return fmt.Errorf("metal: restore to %d tokens, but the KV cache holds %d", f.length, s.length)
	}
	s.settle()
	copy(s.recurrent.Bytes, f.recurrent)
	copy(s.conv.Bytes, f.conv)
	s.length, s.torn = f.length, false
	return nil
}

// Len implements backend.Snapshot.
func (s *snapshot) Len() int { return s.length }

// Bytes implements backend.Snapshot.
func (s *snapshot) Bytes() int64 { return int64(len(s.recurrent) + len(s.conv)) }

// Close implements backend.Snapshot.
func (s *snapshot) Close() error {
	s.recurrent, s.conv = nil, nil
	return nil
}
