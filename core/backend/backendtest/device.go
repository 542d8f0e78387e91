// Package backendtest has a device without a model, for tests of what lies
// above the seam. Its state is a hash of all that a real state depends on: each
// row's token, phase, position and place on the grid of sub-chunks. Two states
// are equal exactly where a real device promises equal bits, so a test that
// compares logits sees any row that was evaluated by the wrong path, from the
// wrong snapshot or on the wrong grid.
package backendtest

import (
	"context"
	"sync"
	"time"

	"calla/core/backend"
	"calla/core/checkpoint"
)

// Device is a scripted device. Set its fields before it is used.
type Device struct {
	// Vocab is the rows of the logits.
	Vocab int
	// Traits is what its weights say of themselves.
	Traits backend.Traits
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
	// Fault, where not nil, is asked before memory is taken or copied; its error
	// becomes the operation's.
	Fault func(Op) error

	mu     sync.Mutex
	counts Counts
}

// Op is an operation on a state that may fail for want of memory.
type Op string

// The operations that a Fault is asked about.
const (
	NewState Op = "new state"
	Save     Op = "save"
	Restore  Op = "restore"
	CopyKV   Op = "copy KV"
)

func (d *Device) fault(op Op) error {
	if d.Fault == nil {
		return nil
	}
	return d.Fault(op)
}

// Counts is what a device has done and what is open on it. Unread are steps that
// nobody has waited for.
type Counts struct {
	Loads, Calls, PrefillRows, DecodeRows int
	Followed, Unread, MostUnread          int
	States, Snapshots, Weights            int // open now
	MostStates, MostSnapshots             int // ever open at once
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
	return &weights{d: d}, nil
}

// Config is a configuration of few layers for the forward pass to walk over.
func (d *Device) Config() checkpoint.Config {
	c := checkpoint.Published
	c.Layers, c.Vocab = 4, d.Vocab
	return c
}

type weights struct {
	d    *Device
	last *step // whose logits the next call writes over
}

func (w *weights) Bytes() (all, mapped int64) { return 1 << 20, 1 << 20 }
func (w *weights) Traits() backend.Traits     { return w.d.Traits }
func (w *weights) Close() error               { w.d.count(func(c *Counts) { c.Weights-- }); return nil }

func (w *weights) NewState(maxTokens int) (backend.State, error) {
	if err := w.d.fault(NewState); err != nil {
		return nil, err
	}
	w.d.count(func(c *Counts) { c.States++; c.MostStates = max(c.MostStates, c.States) })
	return &state{d: w.d, max: maxTokens}, nil
}
