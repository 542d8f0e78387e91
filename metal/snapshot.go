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
	snap := &snapshot{weights: s.weights, length: s.length}
	var err error
	d := s.weights.device.driver
	if snap.recurrent, err = fetch(d, s.recurrent.at(0), s.recurrent.Size); err != nil {
		return nil, err
	}
	if snap.conv, err = fetch(d, s.conv.at(0), s.conv.Size); err != nil {
		return nil, err
	}
	return snap, nil
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
	s.length, s.torn = f.length, false
	d := s.weights.device.driver
	if s.broken = send(d, s.recurrent.at(0), f.recurrent); s.broken == nil {
		s.broken = send(d, s.conv.at(0), f.conv)
	}
	return s.broken
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
