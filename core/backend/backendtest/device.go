// Package backendtest has a device without a model, for tests of what lies
// above the seam. Its state is a hash of all that a real state depends on: each
// row's token, phase, position and place on the grid of sub-chunks. Two states
// are equal exactly where a real device promises equal bits, so a test that
// compares logits sees any row that was evaluated by the wrong path, from the
// wrong snapshot or on the wrong grid.
package backendtest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"calla/core/backend"
	"calla/core/checkpoint"
)

// Device is a scripted device. Set its fields before it is used.
type Device struct {
	// Vocab is the rows of the logits.
	Vocab int
	// Next, where not nil, says which token is to be the likeliest after
	// tokens; otherwise the hash says.
	Next func(tokens []int32) int32
	// Step, where not nil, is called for each call before it is evaluated; its
	// error becomes the step's.
	Step func(c backend.Call) error
	// LoadTime is how long loading takes.
	LoadTime time.Duration
	// LoadError, where not nil, is what loading fails with.
	LoadError error
	// Budget is what Memory reports.
	Budget int64
	// Logits, where not nil, changes the logits of a step.
	Logits func(tokens []int32, logits []float32)

	mu     sync.Mutex
	counts Counts
}

// Counts is what a device has done and what is open on it.
type Counts struct {
	Loads, Calls, PrefillRows, DecodeRows int
	States, Snapshots, Weights            int // open now
}

// Counts returns what the device has done.
func (d *Device) Counts() Counts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.counts
}

func (d *Device) count(f func(*Counts)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(&d.counts)
}

// Name says that it is no device.
func (d *Device) Name() string { return "scripted" }

// Memory returns the budget.
func (d *Device) Memory() (budget, total int64) { return d.Budget, d.Budget }

// Close does nothing.
func (d *Device) Close() error { return nil }

// ScratchBytes is none.
func (d *Device) ScratchBytes(checkpoint.Config, int, int) int64 { return 0 }

// Load needs no weights; of the binding it reads nothing.
func (d *Device) Load(ctx context.Context, _ *backend.Binding, progress func(done, total int64)) (backend.Weights, error) {
	const parts = 4
	for i := range int64(parts) {
		if progress != nil {
			progress(i, parts)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(d.LoadTime / parts):
		}
	}
	if d.LoadError != nil {
		return nil, d.LoadError
	}
	d.count(func(c *Counts) { c.Loads++; c.Weights++ })
	return &weights{d}, nil
}

// Config is a configuration of few layers for the forward pass to walk over.
func (d *Device) Config() checkpoint.Config {
	c := checkpoint.Published
	c.Layers, c.Vocab = 4, d.Vocab
	return c
}

type weights struct{ d *Device }

func (w *weights) Bytes() (all, mapped int64) { return 1 << 20, 1 << 20 }
func (w *weights) Close() error               { w.d.count(func(c *Counts) { c.Weights-- }); return nil }

func (w *weights) NewState(maxTokens int) (backend.State, error) {
	w.d.count(func(c *Counts) { c.States++ })
	return &state{d: w.d, max: maxTokens}, nil
}

// state holds one cumulative hash a token, as a KV cache would, and one hash
// of all of them, as a recurrent state would.
type state struct {
	d         *Device
	max       int
	tokens    []int32
	kv        []uint64
	recurrent uint64
	closed    bool
}

func mix(h uint64, xs ...uint64) uint64 {
	for _, x := range xs {
		h ^= x + 0x9e3779b97f4a7c15 + h<<6 + h>>2
		h *= 0xff51afd7ed558ccd
		h ^= h >> 33
	}
	return h
}

func (s *state) Len() int { return len(s.kv) }
func (s *state) Cap() int { return s.max }
func (s *state) Reset()   { s.tokens, s.kv, s.recurrent = nil, nil, 0 }

// The memory that a model of Config would need.
const (
	kvBytes        = 1 * 2 * 2 * 256 * 2 // a token
	recurrentBytes = 3 * (32*128*128*4 + 3*8192*2)
)

func (s *state) Bytes() int64 { return int64(len(s.kv))*kvBytes + recurrentBytes }

func (s *state) Close() error {
	if s.closed {
		panic("backendtest: state closed twice")
	}
	s.closed = true
	s.d.count(func(c *Counts) { c.States-- })
	return nil
}

func (s *state) Save() (backend.Snapshot, error) {
	s.d.count(func(c *Counts) { c.Snapshots++ })
	return &snapshot{s.d, len(s.kv), s.recurrent}, nil
}

func (s *state) Restore(x backend.Snapshot) error {
	n := x.Len()
	if n > len(s.kv) {
		return fmt.Errorf("backendtest: restore of %d tokens into a KV cache of %d", n, len(s.kv))
	}
	s.tokens, s.kv, s.recurrent = s.tokens[:n], s.kv[:n], x.(*snapshot).recurrent
	return nil
}

func (s *state) CopyKV(from backend.State, n int) error {
	f := from.(*state)
	s.tokens, s.kv, s.recurrent = slices.Clone(f.tokens[:n]), slices.Clone(f.kv[:n]), 0xbad
	return nil
}

type snapshot struct {
	d         *Device
	n         int
	recurrent uint64
}

func (s *snapshot) Len() int     { return s.n }
func (s *snapshot) Bytes() int64 { return recurrentBytes }
func (s *snapshot) Close() error { s.d.count(func(c *Counts) { c.Snapshots-- }); return nil }

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

// logits makes the logits of the last row: small numbers from the hashes, and
// a large one for the scripted token.
func (s *state) logits() []float32 {
	h := mix(s.recurrent, s.kv[len(s.kv)-1])
	out := make([]float32, s.d.Vocab)
	for i := range out {
		out[i] = float32(mix(h, uint64(i))>>40) / (1 << 24) // [0, 1)
	}
	if s.d.Next != nil {
		out[s.d.Next(s.tokens)] += 32
	}
	if s.d.Logits != nil {
		s.d.Logits(s.tokens, out)
	}
	return out
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
