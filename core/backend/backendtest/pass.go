package backendtest

import (
	"fmt"
	"math"

	"calla/core/backend"
)

func (w *weights) Begin(b backend.State, c backend.Call) (backend.Pass, error) {
	s := b.(*state)
	if s.closed {
		panic("backendtest: call on a closed state")
	}
	if c.Follow {
		return nil, fmt.Errorf("backendtest: follow: not scripted")
	}
	if len(s.kv)+len(c.Tokens) > s.max {
		return nil, fmt.Errorf("backendtest: %d tokens in a state for %d", len(s.kv)+len(c.Tokens), s.max)
	}
	if c.Phase == backend.Prefill {
		if len(c.Segments) == 0 || c.Segments[0] > s.Len() || (s.Len()-c.Segments[0])%backend.SubChunk != 0 {
			return nil, fmt.Errorf("backendtest: prefill from %d with segments %v is off the grid", s.Len(), c.Segments)
		}
	}
	return &pass{s: s, c: c}, nil
}

type pass struct {
	s    *state
	c    backend.Call
	head bool
}

func (p *pass) Embed()        {}
func (p *pass) DeltaNet(int)  {}
func (p *pass) Attention(int) {}
func (p *pass) MoE(int)       {}
func (p *pass) Head()         { p.head = true }

func (p *pass) Commit() (backend.Step, error) {
	s := p.s
	if s.d.Step != nil {
		if err := s.d.Step(p.c); err != nil {
			return &step{err: err}, nil
		}
	}
	start := 0
	segments := p.c.Segments
	for _, t := range p.c.Tokens {
		at := len(s.kv)
		for len(segments) > 0 && segments[0] <= at {
			start, segments = segments[0], segments[1:]
		}
		place := uint64(0)
		if p.c.Phase == backend.Prefill {
			place = uint64((at - start) % backend.SubChunk)
		}
		row := []uint64{uint64(t), uint64(p.c.Phase), uint64(at), place}
		var last uint64
		if at > 0 {
			last = s.kv[at-1]
		}
		s.kv = append(s.kv, mix(last, row...))
		s.tokens = append(s.tokens, t)
		s.recurrent = mix(s.recurrent, row...)
	}
	s.d.count(func(c *Counts) {
		c.Calls++
		if p.c.Phase == backend.Prefill {
			c.PrefillRows += len(p.c.Tokens)
		} else {
			c.DecodeRows += len(p.c.Tokens)
		}
	})
	if !p.head {
		return &step{}, nil
	}
	return &step{logits: s.logits()}, nil
}

type step struct {
	logits []float32
	err    error
}

func (s *step) Wait() error       { return s.err }
func (s *step) Logits() []float32 { return s.logits }

func (s *step) Argmax() int32 {
	at, best := int32(-1), float32(math.Inf(-1))
	for i, x := range s.logits {
		if x != x {
			return -1
		}
		if x > best {
			at, best = int32(i), x
		}
	}
	return at
}
