package kernels

import (
	"slices"

	"calla/core/backend"
	"calla/metal"
)

// tap stands between a model and its driver. It notes which kernels ran before
// which values were seen.
type tap struct {
	metal.Driver
	*recorder
	ready   []metal.Kernel            // that the model needs
	runs    map[run]*sample           // what ran, by phase
	since   map[run]bool              // since values were last seen
	seen    bool                      // values, since the last list
	before  map[run]map[place]bool    // the first values seen after a run
	touched map[*metal.Buffer][]int64 // offsets at which buffers were bound
}

// over returns a driver that lets a tap see what runs on d.
func over(d metal.Driver) (metal.Driver, *tap) {
	t := newTap(d)
	if p, ok := d.(metal.Private); ok {
		return privateTap{p, t}, t
	}
	return t, t
}

// privateTap is a tap over a device with memory of its own.
type privateTap struct {
	metal.Private
	tap *tap
}

func (p privateTap) Prepare(list []metal.Kernel) error { return p.tap.Prepare(list) }

func (p privateTap) Commit(l *metal.List) (metal.Completion, error) { return p.tap.Commit(l) }

// run is a kernel in a phase.
type run struct {
	phase  backend.Phase
	kernel metal.Kernel
}

// sample is the largest dispatch of a run, with those that came before it in its
// list, and how many there were.
type sample struct {
	dispatch metal.Dispatch
	lead     []metal.Dispatch
	count    int
}

func newTap(d metal.Driver) *tap {
	return &tap{
		Driver: d, recorder: newRecorder(), runs: map[run]*sample{}, since: map[run]bool{},
		before: map[run]map[place]bool{}, touched: map[*metal.Buffer][]int64{},
	}
}

// Prepare implements metal.Driver. What is measured with is made ready too.
func (t *tap) Prepare(list []metal.Kernel) error {
	t.ready = slices.Clone(list)
	return t.Driver.Prepare(append(slices.Clone(list), metal.CopyKernel))
}

// Commit implements metal.Driver.
func (t *tap) Commit(l *metal.List) (metal.Completion, error) {
	if t.seen {
		clear(t.since)
		t.seen = false
	}
	for i, d := range l.Dispatches {
		at := run{t.phase, d.Kernel}
		t.since[at] = true
		s := t.runs[at]
		if s == nil {
			s = &sample{}
			t.runs[at] = s
		}
		if s.count++; threads(d) > threads(s.dispatch) {
			s.dispatch, s.lead = d, slices.Clone(l.Dispatches[:i])
		}
		for _, b := range d.Buffers {
			t.touched[b.Buffer] = append(t.touched[b.Buffer], b.Offset)
		}
	}
	return t.Driver.Commit(l)
}

// forget forgets which dispatches were the largest: what those that come are given
// lies where the calls that come put it.
func (t *tap) forget() {
	for _, s := range t.runs {
		s.dispatch, s.lead = metal.Dispatch{}, nil
	}
}

func threads(d metal.Dispatch) uint64 {
	return uint64(d.Grid[0]) * uint64(d.Grid[1]) * uint64(d.Grid[2]) * uint64(d.Threads)
}

// observe takes values; all that ran since the last ones had a part in them.
func (t *tap) observe(layer int, name string, width int, v []float32) {
	t.recorder.observe(layer, name, width, v)
	t.seen = true
	at := place{t.phase, layer, name}
	for r := range t.since {
		if t.before[r] == nil {
			t.before[r] = map[place]bool{}
		}
		t.before[r][at] = true
	}
}
