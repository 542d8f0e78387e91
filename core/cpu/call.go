package cpu

import (
	"errors"
	"fmt"

	"calla/core/backend"
)

// Begin implements backend.Weights.
func (w *weights) Begin(st backend.State, c backend.Call) (backend.Pass, error) {
	s := st.(*State)
	if s.weights != w {
		panic("cpu: Begin with a state of different weights")
	}
	if s.open {
		panic("cpu: Begin before the state's last pass was committed")
	}
	tokens, err := s.admit(c)
	if err != nil {
		return nil, err
	}
	if err := w.scratch.ensure(w.config, len(tokens), s.capacity, w.device.options.Threads); err != nil {
		return nil, err
	}
	if err := s.kv.grow(s.length + len(tokens)); err != nil {
		return nil, err
	}
	s.open = true
	return newPass(w, s, c, tokens), nil
}

// admit returns the tokens that a call evaluates, or says why it can't.
func (s *State) admit(c backend.Call) ([]int32, error) {
	if err := s.usable(); err != nil {
		return nil, err
	}
	tokens := c.Tokens
	if c.Follow {
		if c.Phase != backend.Decode || len(tokens) != 0 {
			return nil, errors.New("cpu: only a decode call without tokens of its own can follow the last")
		}
		if s.next < 0 {
			return nil, errors.New("cpu: the last call left no largest logit to follow")
		}
		tokens = []int32{s.next}
	}
	if len(tokens) == 0 {
		return nil, errors.New("cpu: a call without rows")
	}
	if n := s.length + len(tokens); n > s.capacity {
		return nil, fmt.Errorf("cpu: a call to %d tokens in a state for %d", n, s.capacity)
	}
	for _, t := range tokens {
		if t < 0 || int(t) >= s.weights.config.Vocab {
			return nil, fmt.Errorf("cpu: a token is not in the vocabulary of %d", s.weights.config.Vocab)
		}
	}
	return tokens, checkPhase(c, s.length, len(tokens))
}

// checkPhase says whether a call of rows rows at position from keeps its phase's
// rules.
func checkPhase(c backend.Call, from, rows int) error {
	switch c.Phase {
	case backend.Decode:
		if rows != 1 || len(c.Segments) != 0 {
			return fmt.Errorf("cpu: decode of %d rows and %d segments, want one row and none", rows, len(c.Segments))
		}
		return nil
	case backend.Prefill:
		return checkSegments(c.Segments, from, rows)
	}
	return fmt.Errorf("cpu: call in %v", c.Phase)
}

// checkSegments says whether segment starts fit a prefill of rows rows at
// position from, and whether that lies on the grid.
func checkSegments(segments []int, from, rows int) error {
	if len(segments) == 0 || segments[0] < 0 || segments[0] > from {
		return fmt.Errorf("cpu: segment starts %v of a prefill at %d, want the first at or before it", segments, from)
	}
	if off := (from - segments[0]) % backend.SubChunk; off != 0 {
		return fmt.Errorf("cpu: prefill at %d is %d rows behind a sub-chunk edge of the segment at %d", from, off, segments[0])
	}
	last := from
	for _, s := range segments[1:] {
		if s <= last || s >= from+rows {
			return fmt.Errorf("cpu: segment starts %v of a prefill of %d to %d, want them within it and ascending", segments, from, from+rows)
		}
		last = s
	}
	return nil
}

// subChunk is rows lo to hi of a call.
type subChunk struct{ lo, hi int }

// subChunks cuts a prefill of rows rows at position from along the grid.
func subChunks(segments []int, from, rows int) []subChunk {
	var out []subChunk
	for i := range segments {
		lo, end := max(segments[i]-from, 0), rows
		if i+1 < len(segments) {
			end = segments[i+1] - from
		}
		for ; lo < end; lo += backend.SubChunk {
			out = append(out, subChunk{lo, min(lo+backend.SubChunk, end)})
		}
	}
	return out
}
