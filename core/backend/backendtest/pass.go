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
	follows := s.last
	if c.Follow {
		if c.Phase != backend.Decode || len(c.Tokens) > 0 || follows == nil || follows.read && follows.argmax < 0 {
			return nil, fmt.Errorf("backendtest: nothing to follow")
		}
		c.Tokens = []int32{max(follows.argmax, 0)}
	}
	if len(s.kv)+len(c.Tokens) > s.max {
		return nil, fmt.Errorf("backendtest: %d tokens in a state for %d", len(s.kv)+len(c.Tokens), s.max)
	}
	if c.Phase == backend.Prefill {
		if len(c.Segments) == 0 || c.Segments[0] > s.Len() || (s.Len()-c.Segments[0])%backend.SubChunk != 0 {
			return nil, fmt.Errorf("backendtest: prefill from %d with segments %v is off the grid", s.Len(), c.Segments)
		}
	}
	if w.last != nil {
		for i := range w.last.logits {
			w.last.logits[i] = float32(math.NaN())
		}
	}
	return &pass{w: w, s: s, c: c}, nil
}

type pass struct {
	w    *weights
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
	st := &step{d: s.d, argmax: -1}
	s.last, p.w.last = nil, st
	if p.head {
		s.last = st
	}
	s.d.count(func(c *Counts) { c.Unread++; c.MostUnread = max(c.MostUnread, c.Unread) })
	if s.d.Step != nil {
		if st.err = s.d.Step(p.c); st.err != nil {
			return st, nil
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
		if p.c.Follow {
			c.Followed++
		}
		if p.c.Phase == backend.Prefill {
			c.PrefillRows += len(p.c.Tokens)
		} else {
			c.DecodeRows += len(p.c.Tokens)
		}
	})
	if p.head {
		st.logits = s.logits()
		st.argmax = argmax(st.logits)
	}
	return st, nil
}

// step is a call that the device is at work on until somebody waits for it.
type step struct {
	d      *Device
	read   bool
	logits []float32
	argmax int32
	err    error
}

func (s *step) Wait() error {
	if !s.read {
		s.read = true
		s.d.count(func(c *Counts) { c.Unread-- })
	}
	return s.err
}

func (s *step) Logits() []float32 {
	s.Wait()
	return s.logits
}

func (s *step) Argmax() int32 {
	s.Wait()
	return s.argmax
}

func argmax(logits []float32) int32 {
	at, best := int32(-1), float32(math.Inf(-1))
	for i, x := range logits {
		if x != x {
			return -1
		}
		if x > best {
			at, best = int32(i), x
		}
	}
	if math.IsInf(float64(best), 1) {
		return -1
	}
	return at
}
