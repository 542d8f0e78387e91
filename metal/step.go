package metal

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"calla/core/backend"
)

// step is a committed call.
type step struct {
	weights    *weights
	state      *State
	completion Completion
	what       string // for errors
	slot       int
	head       bool

	finished bool
	err      error
	argmax   int32
	logits   []float32
}

var _ backend.Step = (*step)(nil)

// Wait implements backend.Step. Steps before it have finished by then: lists run
// in order.
func (s *step) Wait() error {
	if s.finished {
		return s.err
	}
	ring := &s.weights.ring
	for len(ring.steps) > 0 && ring.steps[0] != s {
		ring.steps[0].Wait()
	}
	s.finished, s.argmax = true, -1
	ring.finished(s)
	if err := s.completion.Wait(); err != nil {
		s.err = fmt.Errorf("metal: %s: %w", s.what, err)
		s.state.broken = s.err
		return s.err
	}
	if s.head {
		s.argmax = int32(binary.LittleEndian.Uint32(ring.tokens.Bytes[4*s.slot:]))
	}
	return nil
}

// Argmax implements backend.Step.
func (s *step) Argmax() int32 {
	if s.Wait() != nil {
		return -1
	}
	return s.argmax
}

// Logits implements backend.Step.
func (s *step) Logits() []float32 {
	if s.Wait() != nil || !s.head {
		return nil
	}
	return floats(s.weights.scratch.logits.Buffer.Bytes)[:s.weights.shapes.vocab]
}

// floats is device memory as float32. Buffers are page-aligned.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
