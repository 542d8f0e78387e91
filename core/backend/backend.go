// Package backend is the seam between the model and the hardware: what a
// device must offer so that the forward pass of this one architecture can run
// on it.
//
// The unit is a block of a layer, not an operation and not the whole model:
// finer cuts would freeze the fusions that make decode fast, a coarser one
// would write the layer graph once a backend.
//
// What every backend promises:
//
//   - A row's result depends on that row and its past alone, never on which
//     rows share its call. Every reduction has one order.
//   - The kernel is chosen by the phase the caller names, by layer shape and by
//     device; never by how many rows a call has. A prefill of one row is a
//     prefill.
//   - Prefill walks the grid of sub-chunks that the call's segment starts
//     define, so that a prompt cut into calls at any edges of that grid has the
//     same bits as one call.
//
// A Device, its Weights and States belong to one goroutine at a time.
package backend

import (
	"context"
	"time"

	"calla/core/checkpoint"
)

// SubChunk is the most rows that the chunked delta rule takes at once, counted
// from a segment start. Calls, and snapshots inside a segment, lie on its grid.
const SubChunk = 64

// Phase says which path a call takes.
type Phase uint8

const (
	// Prefill evaluates prompt tokens.
	Prefill Phase = iota + 1
	// Decode evaluates one generated token.
	Decode
)

func (p Phase) String() string {
	switch p {
	case Prefill:
		return "prefill"
	case Decode:
		return "decode"
	}
	return "no phase"
}

// Device is one piece of hardware that can run the model.
type Device interface {
	// Name says what it is, for people: "CPU (8 threads)".
	Name() string
	// Memory returns the bytes this process may use on the device, and the
	// bytes that exist; zero where that cannot be told.
	Memory() (budget, total int64)
	// ScratchBytes returns the device memory that calls of at most rows rows and
	// contexts of at most maxTokens tokens need besides weights and states, the
	// logits included. It is known before anything is loaded.
	ScratchBytes(c checkpoint.Config, rows, maxTokens int) int64
	// Load lays weights out as the device's kernels want them. It calls
	// progress, where not nil, with bytes done of all; it gives up when ctx
	// ends. The checkpoint must stay open until the Weights are closed.
	Load(ctx context.Context, b *Binding, progress func(done, total int64)) (Weights, error)
	Close() error
}

// Weights is a model laid out on a device.
type Weights interface {
	// Bytes returns the memory it takes on the device, and Mapped how much of
	// that is the checkpoint's own mapped files.
	Bytes() (all, mapped int64)
	// Traits says how calls are best made.
	Traits() Traits
	// NewState makes an empty state for at most maxTokens tokens.
	NewState(maxTokens int) (State, error)
	// Begin starts a call that appends the call's rows to s. It refuses, and
	// leaves the state as it was, rows beyond the state's capacity, tokens
	// outside the vocabulary, a first row off the sub-chunk grid of its segment,
	// a state whose recurrent part is missing since a CopyKV, and a Follow with
	// no largest logit to follow.
	Begin(s State, c Call) (Pass, error)
	Close() error
}

// Traits say how calls on a device are best made. They change when tokens come,
// never which.
type Traits struct {
	// Ahead says that a call may run while the one before it is read, so that the
	// device need not wait for the processor between two tokens. On a device whose
	// calls are done when Commit returns, to follow early only delays a token.
	Ahead bool
	// CallTime is how long a call may take: beyond it a desktop that shares the
	// device stutters, and far beyond it the system ends the call. 0 is any time.
	CallTime time.Duration
}

// Call says which rows a pass evaluates.
type Call struct {
	Phase Phase
	// Tokens are the rows. Decode takes one, or none where Follow is set.
	Tokens []int32
	// Follow, in decode only, evaluates the largest logit's token of the
	// state's last call, without waiting for it. Where that has none (see
	// Step.Argmax) and Begin does not know it yet, the call's results mean nothing.
	Follow bool
	// Segments are the positions, in the whole sequence, of the segment starts
	// that lie in this call or, for its first row, at or before it: the first
	// is the start of the segment that the first row continues. Prefill only.
	Segments []int
}

// Pass is one call on its way. The caller names the blocks in the order of the
// forward pass; delta net, attention and MoE add their result to the residual
// stream. Then it commits.
type Pass interface {
	Embed()
	DeltaNet(layer int)
	Attention(layer int)
	MoE(layer int)
	// Head makes the logits of the call's last row. A prefill call that is not
	// the prompt's last leaves it out.
	Head()
	// Commit hands the work to the device. The state counts the rows from here
	// on. After an error the state is broken: close it.
	Commit() (Step, error)
}

// Step is a committed call. Steps of one state finish in the order of commit.
type Step interface {
	// Wait returns when the device is done. An error means the state's content
	// is lost.
	Wait() error
	// Argmax returns the token of the largest logit, of equals the lowest, and
	// -1 where any logit is not a number or the largest not a finite one. It may
	// be asked after later calls too. It and Logits wait first, and are there only
	// when the pass had a Head.
	Argmax() int32
	// Logits returns the logits of the last row, float32, one for each token of
	// the binding. They are the device's memory: read them before the next Begin
	// of any state.
	Logits() []float32
}

// State is what a session has evaluated: KV cache, recurrent state and conv
// state.
type State interface {
	// Len returns the tokens evaluated, Cap the most it can hold.
	Len() int
	Cap() int
	// Save copies the recurrent and conv state, which exist only after Len()
	// tokens, into a snapshot.
	Save() (Snapshot, error)
	// Restore puts a snapshot back; the KV cache is cut to its length. The
	// first s.Len() tokens of the KV cache must be the ones that the snapshot
	// was taken after.
	Restore(s Snapshot) error
	// CopyKV replaces the KV cache by the first n tokens of another's, which
	// may be its own. The state can't go on until a Restore gives it the
	// recurrent and conv state that belong to them, or a Reset empties it.
	CopyKV(from State, n int) error
	// Reset empties the state.
	Reset()
	// Bytes returns the memory that the state takes now.
	Bytes() int64
	Close() error
}

// Snapshot is a saved recurrent and conv state.
type Snapshot interface {
	// Len returns the tokens after which it was taken.
	Len() int
	Bytes() int64
	Close() error
}
