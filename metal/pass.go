package metal

import (
	"fmt"

	"calla/core/backend"
)

// pass is a call on its way: blocks append dispatches, Commit hands them over.
type pass struct {
	*weights
	Encoder
	state *State
	phase backend.Phase
	rows  int
	from  int // position of the first row

	slot      int     // in the ring
	tokens    Binding // [rows]
	angles    Binding // [rows, rotary dims / 2] (cos, sin)
	chunkList Binding // [chunks] (first row, rows)
	chunks    int

	head bool
	err  error // of a block that was observed
}

var _ backend.Pass = (*pass)(nil)

func newPass(w *weights, s *State, c backend.Call, rows int) *pass {
	return &pass{
		weights: w, Encoder: Encoder{tensor: w.device.driver.MatrixUnits()},
		state: s, phase: c.Phase, rows: rows, from: s.length,
	}
}

// Embed implements backend.Pass.
func (p *pass) Embed() {
	p.Encoder.Embed(p.tokens, p.embed, p.scratch.h, p.rows)
	p.observe(-1, view{name: "embed", at: p.scratch.h, width: p.hidden(), kind: bf16})
}

// Head implements backend.Pass.
func (p *pass) Head() {
	s := &p.scratch
	last := s.h.Buffer.at(int64(2 * (p.rows - 1) * p.hidden()))
	p.Encoder.Head(last, p.norm, p.weights.head, s.logits, s.parts, p.config.NormEps)
	p.Encoder.Argmax(s.parts, p.shapes.vocab, p.ring.tokens.at(int64(4*p.slot)))
	p.head = true
}

func (p *pass) hidden() int { return p.shapes.hidden }

// Commit implements backend.Pass.
func (p *pass) Commit() (backend.Step, error) {
	s := p.state
	s.open = false
	completion, err := p.flush()
	if p.err != nil {
		err = p.err
	}
	if err != nil {
		s.broken = fmt.Errorf("metal: %s: %w", p.what(), err)
		return nil, s.broken
	}
	st := &step{weights: p.weights, state: s, completion: completion, what: p.what(), slot: p.slot, head: p.head}
	p.ring.steps = append(p.ring.steps, st)
	s.length += p.rows
	s.conv, p.scratch.conv = p.scratch.conv, s.conv
	s.last = nil
	if p.head {
		s.last = st
	}
	return st, nil
}

// what names the call in errors.
func (p *pass) what() string {
	if p.phase == backend.Decode {
		return fmt.Sprintf("decode of position %d", p.from)
	}
	return fmt.Sprintf("prefill of positions %d to %d", p.from, p.from+p.rows-1)
}

// flush commits what was encoded so far.
func (p *pass) flush() (Completion, error) {
	if p.device.options.Record != nil {
		p.device.options.Record(p.List())
	}
	c, err := p.device.driver.Commit(p.List())
	p.Reset()
	return c, err
}
