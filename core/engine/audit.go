package engine

import (
	"context"
	"fmt"
	"math"
	"slices"

	"calla/core/backend"
)

// Finding is one comparison of an audit: two ways to evaluate the same prompt,
// which must give the same logits, bit for bit, for the prompt's last token and
// for a few generated ones.
type Finding struct {
	Way   string `json:"way"` // how it was evaluated: "from the snapshot at 1024"
	Equal bool   `json:"equal"`
	// Step and Logit are where the first difference is: step 0 is the prompt's
	// last token.
	Step  int `json:"step"`
	Logit int `json:"logit"`
}

// auditSteps is how many generated tokens are compared behind the prompt.
const auditSteps = 3

// auditChunks are the call sizes that must not matter. The first is what the
// others are compared with.
var auditChunks = []int{2048, 512, 192, 64}

// Audit proves on the loaded model that a prompt's result does not depend on
// how it was evaluated: in calls of several sizes, from every place where the
// engine may take a snapshot, in place and in a branch. The first way, cold in
// the largest calls, is what the others are compared with. The prefix cache is
// emptied for it. It calls report with each finding.
func (e *Engine) Audit(ctx context.Context, prompt []int32, report func(Finding)) error {
	if err := e.o.admit(Request{Prompt: prompt, MaxTokens: auditSteps, LogProbs: NoLogProbs}); err != nil {
		return err
	}
	return e.exclusive(ctx, func(worker context.Context, w *worker) error {
		w.cache.drop()
		w.meter.cached(w.cache)
		a := audit{w: w, prompt: prompt, grid: newGrid(prompt, w.o.Turn), report: report}
		a.alive = func() error {
			if err := context.Cause(ctx); err != nil {
				return err
			}
			return context.Cause(worker)
		}
		return a.run()
	})
}

// audit is one prompt under audit.
type audit struct {
	w      *worker
	prompt []int32
	grid   grid
	alive  func() error
	report func(Finding)
	want   trace

	state, branch backend.State
}

// trace is the logits of an evaluation, of each compared step.
type trace [][]float32

// auditBatch is how many snapshots are held at once.
const auditBatch = 8

func (a *audit) run() (err error) {
	if a.state, err = a.w.newState(); err != nil {
		return &DeviceError{err}
	}
	defer a.state.Close()
	if a.branch, err = a.w.newState(); err != nil {
		return &DeviceError{err}
	}
	defer a.branch.Close()
	if a.want, err = a.finish(a.state, auditChunks[0]); err != nil {
		return err
	}
	for _, chunk := range auditChunks {
		if chunk != auditChunks[0] {
			a.state.Reset()
			if err := a.check(a.state, chunk, "cold"); err != nil {
				return err
			}
		}
		for places := range slices.Chunk(a.places(), auditBatch) {
			if err := a.snapshots(places, chunk); err != nil {
				return err
			}
		}
	}
	return nil
}

// places returns where the engine may take a snapshot of the prompt: at every
// segment start, at its landmarks, and at the last edge.
func (a *audit) places() []int {
	n := len(a.prompt)
	keep := append([]int{a.grid.edgeBefore(n - 1)}, a.grid.starts...)
	return landmarks(a.grid, 0, n, keep)
}

// snapshots evaluates the prompt in calls that also end at each of the places,
// takes snapshots there, and then goes on from each of them.
func (a *audit) snapshots(places []int, chunk int) error {
	a.state.Reset()
	var snaps []backend.Snapshot
	defer func() {
		for _, s := range snaps {
			s.Close()
		}
	}()
	for _, at := range places {
		if _, err := a.prefill(a.state, at, chunk); err != nil {
			return err
		}
		s, err := a.state.Save()
		if err != nil {
			return &DeviceError{err}
		}
		snaps = append(snaps, s)
	}
	if err := a.check(a.state, chunk, fmt.Sprintf("cut at each of %d places", len(places))); err != nil {
		return err
	}
	// A restore gives up the tokens behind it, so the last snapshot comes first.
	for _, s := range slices.Backward(snaps) {
		if err := a.from(s, chunk); err != nil {
			return err
		}
	}
	return nil
}

// from goes on from a snapshot, and, once a place, from a branch there.
func (a *audit) from(s backend.Snapshot, chunk int) error {
	if err := a.state.Restore(s); err != nil {
		return &DeviceError{err}
	}
	if err := a.check(a.state, chunk, fmt.Sprintf("from the snapshot at %d", s.Len())); err != nil || chunk != auditChunks[0] {
		return err
	}
	a.branch.Reset()
	err := a.branch.CopyKV(a.state, s.Len())
	if err == nil {
		err = a.branch.Restore(s)
	}
	if err != nil {
		return &DeviceError{err}
	}
	return a.check(a.branch, chunk, fmt.Sprintf("in a branch at %d", s.Len()))
}

// check finishes the prompt on a state that holds its head, and compares.
func (a *audit) check(s backend.State, chunk int, way string) error {
	got, err := a.finish(s, chunk)
	if err == nil {
		a.compare(fmt.Sprintf("%s, calls of %d tokens", way, chunk), got)
	}
	return err
}

// finish evaluates what a state lacks of the prompt and then a few tokens.
func (a *audit) finish(s backend.State, chunk int) (trace, error) {
	step, err := a.prefill(s, len(a.prompt), chunk)
	if err != nil {
		return nil, err
	}
	var t trace
	for i := 0; ; i++ {
		logits := append([]float32(nil), step.Logits()...)
		t = append(t, logits)
		if i == auditSteps {
			return t, nil
		}
		if err := a.alive(); err != nil {
			return nil, err
		}
		id, err := argmax(logits[:a.w.o.Vocab])
		if err != nil {
			return nil, err
		}
		step, err = a.w.call(1, func() (backend.Step, error) { return a.w.model.Decode(s, id) })
		if err != nil {
			return nil, err
		}
	}
}

// prefill evaluates the prompt up to token to, which a state lacks.
func (a *audit) prefill(s backend.State, to, chunk int) (step backend.Step, err error) {
	from := s.Len()
	for _, end := range a.grid.callEnds(from, to, chunk, nil) {
		if err := a.alive(); err != nil {
			return nil, err
		}
		step, err = a.w.call(end-from, func() (backend.Step, error) {
			return a.w.model.Prefill(s, a.prompt[from:end], a.grid.covering(from, end), end == len(a.prompt))
		})
		if err != nil {
			return nil, err
		}
		from = end
	}
	return step, nil
}

// compare reports whether a trace is the first one's, to the bit.
func (a *audit) compare(way string, got trace) {
	for i := range a.want {
		if j := firstDifference(a.want[i], got[i]); j >= 0 {
			a.report(Finding{Way: way, Step: i, Logit: j})
			return
		}
	}
	a.report(Finding{Way: way, Equal: true})
}

// firstDifference returns where two rows of logits first differ in a bit, or -1.
func firstDifference(a, b []float32) int {
	for i, x := range a {
		if math.Float32bits(x) != math.Float32bits(b[i]) {
			return i
		}
	}
	return -1
}
