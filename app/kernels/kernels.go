// Package kernels shows that a GPU computes what the processor computes, and how
// fast its kernels are.
//
// The first layers of a model, one attention layer among them, run on the GPU and,
// by plain Go, on the processor. What both have inside is compared after every few
// dispatches, so that each kernel that a model is run with stands before a
// comparison, at the model's own sizes. Then each is timed alone and its rate set
// beside that at which the same GPU copies memory.
//
// The report holds numbers and names of kernels: no text and no token of people.
package kernels

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/cpu"
	"calla/core/model"
	"calla/metal"
)

// Options are how thorough a run is. The zero value is a short one.
type Options struct {
	Rows    int // of the prompt; at least a sub-chunk and a half
	Steps   int // tokens decoded
	Repeats int // of each kernel that is timed, more where these tell nothing; 1 has it so
	// CopyBytes is how much memory is copied to measure the bandwidth.
	CopyBytes int
}

// Thorough is what a person runs once.
var Thorough = Options{Rows: 200, Steps: 6, Repeats: 40, CopyBytes: 256 << 20}

func (o Options) complete() Options {
	o.Rows, o.Steps = max(o.Rows, backend.SubChunk*3/2), max(o.Steps, 2)
	o.Repeats, o.CopyBytes = max(o.Repeats, 1), max(o.CopyBytes, 1<<20)
	return o
}

// Report is what a run found.
type Report struct {
	Device      string  `json:"device"`
	MatrixUnits bool    `json:"matrix_units"`
	Layers      int     `json:"layers"`
	Hidden      int     `json:"hidden"`
	Experts     int     `json:"experts"`
	Vocab       int     `json:"vocabulary"`
	Copy        float64 `json:"copy_bytes_per_s"` // read and written
	// Checks are the comparisons, Kernels the kernels, sorted by name.
	Checks  []Check  `json:"checks"`
	Kernels []Kernel `json:"kernels"`
	OK      bool     `json:"ok"`
}

// Run checks and measures the kernels of a driver, which it closes, on the first
// layers of a checkpoint. It says what it does.
func Run(ctx context.Context, d metal.Driver, c *checkpoint.Checkpoint, o Options, say func(string)) (*Report, error) {
	o = o.complete()
	b := model.Bind(c, 0)
	b.Layers = b.Layers[:min(len(b.Layers), b.Config.FullAttentionInterval)]
	b.Config.Layers = len(b.Layers)
	r := &Report{
		Device: d.Name(), MatrixUnits: d.MatrixUnits(),
		Layers: b.Config.Layers, Hidden: b.Config.Hidden, Experts: b.Config.Experts, Vocab: b.Config.Vocab,
	}
	driver, t := over(d)
	gpu := metal.New(driver, metal.Options{Observe: t.observe})
	defer gpu.Close()
	say(fmt.Sprintf("loading %d layers", r.Layers))
	on, err := start(ctx, gpu, b, o)
	if err != nil {
		return nil, err
	}
	defer on.close()
	say("running them on " + r.Device)
	if err := on.run(ctx, t.enter, t.observe); err != nil {
		return nil, fmt.Errorf("kernels: on the GPU: %w", err)
	}
	say("running them on the processor")
	want, err := reference(ctx, b, o)
	if err != nil {
		return nil, fmt.Errorf("kernels: on the processor: %w", err)
	}
	r.Checks = compare(t.values, want)
	say("timing each kernel")
	if r.Copy, err = t.copyRate(o); err != nil {
		return nil, fmt.Errorf("kernels: copy: %w", err)
	}
	if r.Kernels, err = t.measure(ctx, on, r); err != nil {
		return nil, err
	}
	r.OK = !slices.ContainsFunc(r.Checks, func(c Check) bool { return !c.OK }) &&
		!slices.ContainsFunc(r.Kernels, func(k Kernel) bool { return !k.OK })
	return r, nil
}

// observer is shown rows of values, as metal.Options.Observe is.
type observer func(layer int, name string, width int, values []float32)

// subject is a model under way on a device.
type subject struct {
	model *model.Model
	state backend.State
	o     Options
}

func start(ctx context.Context, d backend.Device, b *backend.Binding, o Options) (*subject, error) {
	w, err := d.Load(ctx, b, nil)
	if err != nil {
		return nil, err
	}
	m := model.New(b.Config, w)
	s, err := m.NewState(o.Rows + o.Steps)
	if err != nil {
		m.Close()
		return nil, err
	}
	return &subject{m, s, o}, nil
}

func (s *subject) close() {
	s.state.Close()
	s.model.Close()
}

// run prefills tokens that are the same in every run, in two segments, and
// decodes others. It says before each call which phase comes, and shows what
// comes out of it.
func (s *subject) run(ctx context.Context, enter func(backend.Phase), show observer) error {
	lot := rand.New(rand.NewPCG(1, 2))
	tokens := make([]int32, s.o.Rows+s.o.Steps)
	for i := range tokens {
		tokens[i] = lot.Int32N(int32(s.model.Config().Vocab))
	}
	call := func(step backend.Step, err error) error {
		if err == nil {
			err = step.Wait()
		}
		if err != nil {
			return err
		}
		logits := step.Logits()
		show(-1, "logits", len(logits), logits)
		show(-1, "token beside that of the logits", 1, []float32{float32(step.Argmax() - cpu.Argmax(logits))})
		return context.Cause(ctx)
	}
	enter(backend.Prefill)
	if err := call(s.model.Prefill(s.state, tokens[:s.o.Rows], []int{0, s.o.Rows / 3}, true)); err != nil {
		return err
	}
	enter(backend.Decode)
	for _, t := range tokens[s.o.Rows:] {
		if err := call(s.model.Decode(s.state, t)); err != nil {
			return err
		}
	}
	return nil
}

// reference runs the same on the processor, by the plain kernels.
func reference(ctx context.Context, b *backend.Binding, o Options) (values, error) {
	seen := newRecorder()
	d := cpu.New(cpu.Options{Kernels: cpu.Portable, Observe: seen.observe})
	defer d.Close()
	s, err := start(ctx, d, b, o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return seen.values, s.run(ctx, seen.enter, seen.observe)
}
