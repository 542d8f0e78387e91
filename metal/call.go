package metal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"calla/core/backend"
)

var errNothingToFollow = errors.New("metal: the last call left no largest logit to follow")

// Begin implements backend.Weights.
func (w *weights) Begin(st backend.State, c backend.Call) (backend.Pass, error) {
	s := st.(*State)
	if s.weights != w {
		panic("metal: Begin with a state of different weights")
	}
	if s.open {
		panic("metal: Begin before the state's last pass was committed")
	}
	rows, err := s.admit(c)
	if err != nil {
		return nil, err
	}
	if rows > w.scratch.rows {
		if err := w.ring.drain(); err != nil {
			return nil, err
		}
		if err := w.scratch.ensure(w.device.driver, w.shapes, rows); err != nil {
			return nil, err
		}
	}
	p := newPass(w, s, c, rows)
	if err := p.prepare(c); err != nil {
		return nil, err
	}
	if err := s.grow(s.length + rows); err != nil {
		return nil, err
	}
	s.open = true
	return p, nil
}

// admit returns how many rows a call evaluates, or says why it can't.
func (s *State) admit(c backend.Call) (int, error) {
	if err := s.usable(); err != nil {
		return 0, err
	}
	rows := len(c.Tokens)
	if c.Follow {
		if c.Phase != backend.Decode || rows != 0 {
			return 0, errors.New("metal: only a decode call without tokens of its own can follow the last")
		}
		if s.last == nil {
			return 0, errNothingToFollow
		}
		rows = 1
	}
	if rows == 0 {
		return 0, errors.New("metal: a call without rows")
	}
	if n := s.length + rows; n > s.capacity {
		return 0, fmt.Errorf("metal: a call to %d tokens in a state for %d", n, s.capacity)
	}
	for _, t := range c.Tokens {
		if t < 0 || int(t) >= s.weights.config.Vocab {
			return 0, fmt.Errorf("metal: token %d, want 0 to %d", t, s.weights.config.Vocab-1)
		}
	}
	return rows, checkPhase(c, s.length, rows)
}

// checkPhase says whether a call of rows rows at position from keeps its phase's
// rules.
func checkPhase(c backend.Call, from, rows int) error {
	switch c.Phase {
	case backend.Decode:
		if rows != 1 || len(c.Segments) != 0 {
			return fmt.Errorf("metal: decode of %d rows and %d segments, want one row and none", rows, len(c.Segments))
		}
		return nil
	case backend.Prefill:
		return checkSegments(c.Segments, from, rows)
	}
	return fmt.Errorf("metal: call in %v", c.Phase)
}

// checkSegments says whether segment starts fit a prefill of rows rows at
// position from, and whether that lies on the grid.
func checkSegments(segments []int, from, rows int) error {
	if len(segments) == 0 || segments[0] < 0 || segments[0] > from {
		return fmt.Errorf("metal: segment starts %v of a prefill at %d, want the first at or before it", segments, from)
	}
	if off := (from - segments[0]) % backend.SubChunk; off != 0 {
		return fmt.Errorf("metal: prefill at %d is %d rows behind a sub-chunk edge of the segment at %d", from, off, segments[0])
	}
	last := from
	for _, s := range segments[1:] {
		if s <= last || s >= from+rows {
			return fmt.Errorf("metal: segment starts %v of a prefill of %d to %d, want them within it and ascending", segments, from, from+rows)
		}
		last = s
	}
	return nil
}

// subChunks cuts a prefill of rows rows at position from along the grid: first
// row and rows of each.
func subChunks(segments []int, from, rows int) [][2]uint32 {
	var out [][2]uint32
	for i := range segments {
		lo, end := max(segments[i]-from, 0), rows
		if i+1 < len(segments) {
			end = segments[i+1] - from
		}
		for ; lo < end; lo += backend.SubChunk {
			out = append(out, [2]uint32{uint32(lo), uint32(min(backend.SubChunk, end-lo))})
		}
	}
	return out
}

// prepare writes the call's inputs to its place in the ring: tokens, the angles
// of rope and the list of sub-chunks.
func (p *pass) prepare(c backend.Call) error {
	if c.Phase == backend.Prefill {
		chunks := subChunks(c.Segments, p.from, p.rows)
		p.chunks = len(chunks)
		return p.fill(c, chunks)
	}
	return p.fill(c, nil)
}

func (p *pass) fill(c backend.Call, chunks [][2]uint32) error {
	half := len(p.frequencies)
	anglesAt := align(4*p.rows, alignment)
	chunksAt := align(anglesAt+8*p.rows*half, alignment)
	slot, inputs, err := p.ring.take(p.device.driver, chunksAt+8*len(chunks))
	if err != nil {
		return err
	}
	p.slot = slot
	p.tokens, p.angles, p.chunkList = inputs.at(0), inputs.at(int64(anglesAt)), inputs.at(int64(chunksAt))
	tokens := c.Tokens
	if c.Follow {
		last := p.state.last
		if last.finished && last.argmax < 0 {
			return errNothingToFollow
		}
		if last.finished {
			tokens = []int32{last.argmax}
		} else {
			p.tokens = p.ring.tokens.at(int64(4 * last.slot))
		}
	}
	for i, t := range tokens {
		binary.LittleEndian.PutUint32(inputs.Bytes[4*i:], uint32(t))
	}
	for t := range p.rows {
		for i, f := range p.frequencies {
			sin, cos := math.Sincos(float64(p.from+t) * f)
			at := inputs.Bytes[anglesAt+8*(t*half+i):]
			putFloat(at, float32(cos))
			putFloat(at[4:], float32(sin))
		}
	}
	for i, x := range chunks {
		binary.LittleEndian.PutUint32(inputs.Bytes[chunksAt+8*i:], x[0])
		binary.LittleEndian.PutUint32(inputs.Bytes[chunksAt+8*i+4:], x[1])
	}
	return nil
}
