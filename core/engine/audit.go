package engine

import (
	"context"
	"fmt"
	"math"

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

// auditChunks are the call sizes that must not matter.
var auditChunks = []int{64, 192, 512, 2048}

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
}

// trace is the logits of an evaluation, of each compared step.
type trace [][]float32

func (a *audit) run() (err error) {
	state, err := a.w.newState()
	if err != nil {
		return &DeviceError{err}
	}
	defer state.Close()
	chunks := auditChunks
	if a.want, err = a.cold(state, chunks[len(chunks)-1]); err != nil {
		return err
	}
	for _, chunk := range chunks[:len(chunks)-1] {
		got, err := a.cold(state, chunk)
		if err != nil {
			return err
		}
		a.compare(fmt.Sprintf("cold, calls of %d tokens", chunk), got)
	}
	branch, err := a.w.newState()
	if err != nil {
		return &DeviceError{err}
	}
	defer branch.Close()
	for _, at := range a.places() {
		if err := a.snapshot(state, branch, at); err != nil {
			return err
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

// cold evaluates the prompt from the start.
func (a *audit) cold(s backend.State, chunk int) (trace, error) {
	s.Reset()
	return a.finish(s, 0, chunk)
}

// snapshot compares the evaluation from a snapshot, continued where it was
// taken, restored there, and in a branch.
func (a *audit) snapshot(s, branch backend.State, at int) error {
	s.Reset()
	if _, err := a.prefill(s, 0, at, 512); err != nil {
		return err
	}
	snap, err := s.Save()
	if err != nil {
		return &DeviceError{err}
	}
	defer snap.Close()
	for _, way := range []struct {
		name  string
		ready func() (backend.State, error)
	}{
		{"cut at", func() (backend.State, error) { return s, nil }},
		{"from the snapshot at", func() (backend.State, error) { return s, s.Restore(snap) }},
		{"in a branch at", func() (backend.State, error) {
			branch.Reset()
			if err := branch.CopyKV(s, at); err != nil {
				return nil, err
			}
			return branch, branch.Restore(snap)
		}},
	} {
		state, err := way.ready()
		if err != nil {
			return &DeviceError{err}
		}
		got, err := a.finish(state, at, 2048)
		if err != nil {
			return err
		}
		a.compare(fmt.Sprintf("%s %d", way.name, at), got)
	}
	return nil
}

// finish evaluates what a state lacks of the prompt and then a few tokens.
func (a *audit) finish(s backend.State, from, chunk int) (trace, error) {
	step, err := a.prefill(s, from, len(a.prompt), chunk)
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

// prefill evaluates prompt tokens [from, to).
func (a *audit) prefill(s backend.State, from, to, chunk int) (step backend.Step, err error) {
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
	f := Finding{Way: way, Equal: true}
	for i := range a.want {
		for j, x := range a.want[i] {
			if math.Float32bits(x) != math.Float32bits(got[i][j]) {
				a.report(Finding{Way: way, Step: i, Logit: j})
				return
			}
		}
	}
	a.report(f)
}
