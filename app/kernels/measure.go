package kernels

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/metal"
)

// Kernel is what was found of one kernel in one phase.
type Kernel struct {
	Name  string `json:"kernel"` // with its function constants
	Phase string `json:"phase"`
	// Runs is how often it ran, Checks how many values were compared that came
	// straight from it and its neighbours, Failed those that were wrong.
	Runs   int  `json:"runs"`
	Checks int  `json:"checks"`
	Failed int  `json:"failed"`
	OK     bool `json:"ok"`
	// Time is that of the largest run, alone, and where AtMost is set no more than
	// that: the clock did not tell it from nothing. Bytes what it must move of weights
	// and states, 0 where that is not what bounds it, and Share its rate by that of
	// a copy. It runs many times over, so that what a cache holds comes from there.
	Time   float64 `json:"time_s"`
	AtMost bool    `json:"at_most,omitempty"`
	Bytes  int64   `json:"bytes"`
	Share  float64 `json:"share_of_copy"`
}

// measure times every kernel that the model needs. One that never ran is there
// too, and not OK. Kernels are timed behind a call of their phase that has just
// run: what they are given is whole then.
func (t *tap) measure(ctx context.Context, s *subject, r *Report) ([]Kernel, error) {
	var out []Kernel
	ran := map[metal.Kernel]bool{}
	for _, phase := range []backend.Phase{backend.Prefill, backend.Decode} {
		t.forget()
		s.state.Reset()
		short := *s
		if short.o.Steps = 0; phase == backend.Decode {
			short.o.Steps = 1
		}
		if err := short.run(ctx, t.enter, func(int, string, int, []float32) {}); err != nil {
			return nil, fmt.Errorf("kernels: before timing: %w", err)
		}
		for at, sample := range t.runs {
			if at.phase != phase {
				continue
			}
			ran[at.kernel] = true
			k, err := t.kernel(at, sample, s, r)
			if err != nil {
				return nil, fmt.Errorf("kernels: time %v: %w", at.kernel, err)
			}
			out = append(out, k)
		}
	}
	for _, k := range t.ready {
		if !ran[k] {
			out = append(out, Kernel{Name: k.String()})
		}
	}
	slices.SortFunc(out, func(a, b Kernel) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Phase, b.Phase))
	})
	return out, nil
}

// kernel sums up what was seen of a kernel in a phase, and times it.
func (t *tap) kernel(at run, s *sample, on *subject, r *Report) (Kernel, error) {
	k := Kernel{Name: at.kernel.String(), Phase: at.phase.String(), Runs: s.count}
	for _, c := range r.Checks {
		if c.Phase == k.Phase && t.before[at][place{at.phase, c.Layer, c.Value}] {
			k.Checks++
			if !c.OK {
				k.Failed++
			}
		}
	}
	k.OK = k.Checks > 0 && k.Failed == 0
	var d time.Duration
	var told bool
	var err error
	if chained[at.kernel.Name] {
		d, told, err = t.timeBehind(s.lead, s.dispatch, on.o.Repeats)
	} else {
		d, told, err = t.timeAlone(s.dispatch, on.o.Repeats)
	}
	if err != nil {
		return k, err
	}
	k.Time, k.AtMost = d.Seconds(), !told
	if at.phase == backend.Decode {
		k.Bytes = t.traffic(s.dispatch, on.model.Config())
	}
	if k.Bytes > 0 {
		k.Share = float64(k.Bytes) / k.Time / r.Copy
	}
	return k, nil
}

// chained are the kernels that count on with what they find: they run behind
// those that set it up, never twice in a row.
var chained = map[string]bool{"count_experts": true, "place_experts": true, "scatter_experts": true}

// timeAlone returns how long a dispatch takes, from how much longer a list of many
// is than a list of one, and whether that was told or is a bound. What it writes is
// of no use to anyone any more.
func (t *tap) timeAlone(d metal.Dispatch, repeats int) (time.Duration, bool, error) {
	d.Barrier = true
	one := []metal.Dispatch{d}
	return t.difference(repeats, func(n int) (short, long []metal.Dispatch) { return one, slices.Repeat(one, 1+n) })
}

// timeBehind is timeAlone of how much longer its lead takes with the dispatch
// behind it.
func (t *tap) timeBehind(lead []metal.Dispatch, d metal.Dispatch, repeats int) (time.Duration, bool, error) {
	d.Barrier = true
	without := slices.Clone(lead)
	if len(without) > 0 {
		without[0].Barrier = true // behind the end of the last
	}
	with := append(slices.Clone(without), d)
	return t.difference(repeats, func(n int) (short, long []metal.Dispatch) {
		return slices.Repeat(without, n), slices.Repeat(with, n)
	})
}

// tries is how often a time is looked for, each time with four times the repeats.
const tries = 3

// difference shares out by how much the longer of two lists takes longer, each with
// n repeats or, where that is lost among their own differences, with more.
func (t *tap) difference(n int, lists func(n int) (short, long []metal.Dispatch)) (each time.Duration, told bool, err error) {
	for range tries {
		short, long := lists(n)
		less, err := t.best(short)
		if err != nil {
			return 0, false, err
		}
		more, err := t.best(long)
		if err != nil {
			return 0, false, err
		}
		if each, told = share(less, more, n); told || n == 1 {
			break
		}
		n *= 4
	}
	return each, told, nil
}

// took is how long runs of a list took: the shortest, and by how much the next was
// longer.
type took struct{ shortest, spread time.Duration }

// share returns an n-th of what one list takes longer than another, or the most
// that it can be where that is not told from what runs of the same list differ by.
func share(less, more took, n int) (each time.Duration, told bool) {
	longer, spread := more.shortest-less.shortest, less.spread+more.spread
	if told = longer > spread; !told {
		longer = max(longer, 0) + spread
	}
	return max(longer/time.Duration(n), 1), told
}

// best runs a list three times.
func (t *tap) best(list []metal.Dispatch) (took, error) {
	var all []time.Duration
	for range 3 {
		start := time.Now()
		c, err := t.Driver.Commit(&metal.List{Dispatches: list})
		if err == nil {
			err = c.Wait()
		}
		if err != nil {
			return took{}, err
		}
		all = append(all, max(time.Since(start), 1))
	}
	slices.Sort(all)
	return took{all[0], all[1] - all[0]}, nil
}

// copyRate returns the bytes that a copy reads and writes in a second.
func (t *tap) copyRate(o Options) (float64, error) {
	bytes := int(min(int64(o.CopyBytes), t.MaxBuffer()))
	var at [2]metal.Binding
	make := t.NewBuffer
	if p, ok := t.Driver.(metal.Private); ok {
		make = p.NewPrivate
	}
	for i, name := range []string{"from", "to"} {
		b, err := make(name, int64(bytes))
		if err != nil {
			return 0, err
		}
		defer t.Free(b)
		at[i] = metal.Binding{Buffer: b}
	}
	var e metal.Encoder
	e.Copy(at[0], at[1], bytes)
	d, _, err := t.timeAlone(e.List().Dispatches[0], min(o.Repeats, 8))
	return 2 * float64(bytes) / d.Seconds(), err
}

// traffic returns the bytes of weights and states that a decode kernel moves, or
// 0 where other things bound it. A part of a buffer ends where the next begins
// that some kernel was given.
func (t *tap) traffic(d metal.Dispatch, c checkpoint.Config) int64 {
	matrix := func(rows, columns int) int64 { return int64(rows) * int64(columns/2+columns/64*4) }
	inner, name := c.ExpertsPerToken*c.ExpertDim+c.SharedExpertDim, d.Kernel.Name
	switch {
	case name == "experts_gate_up":
		return matrix(2*inner, c.Hidden)
	case name == "experts_down":
		return matrix(c.Hidden, inner)
	case name == "project_normed", name == "project_add", name == "route_normed", name == "head":
		return t.extents(d, 1, "layer", "head")
	case strings.HasPrefix(name, "delta_step"):
		return t.extents(d, 2, "recurrent") // read and written
	}
	return 0
}

// extents adds up the parts that a dispatch is given of buffers whose names begin
// so.
func (t *tap) extents(d metal.Dispatch, times int64, names ...string) int64 {
	var sum int64
	for _, b := range d.Buffers {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(b.Buffer.Name, n) }) {
			continue
		}
		end := b.Buffer.Size
		for _, other := range t.touched[b.Buffer] {
			if other > b.Offset {
				end = min(end, other)
			}
		}
		sum += times * (end - b.Offset)
	}
	return sum
}
