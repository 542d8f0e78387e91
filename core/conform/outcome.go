package conform

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/model"
)

// outcome is all that a run leaves behind, by name: logits and the contents of
// the state.
type outcome map[string][]float32

// difference names the first thing that two outcomes do not have in common to
// the bit, or is empty.
func (o outcome) difference(other outcome) string {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		a, b := o[name], other[name]
		if len(a) != len(b) {
			return fmt.Sprintf("%s: %d values and %d", name, len(a), len(b))
		}
		for i := range a {
			if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
				return fmt.Sprintf("%s: value %d is %v and %v", name, i, a[i], b[i])
			}
		}
	}
	if len(o) != len(other) {
		return fmt.Sprintf("%d parts and %d", len(o), len(other))
	}
	return ""
}

// same fails where two outcomes differ in a bit.
func (o outcome) same(t testing.TB, what string, other outcome) {
	t.Helper()
	if d := o.difference(other); d != "" {
		t.Errorf("%s: %s", what, d)
	}
}

// prompt is tokens and the segment starts in them.
type prompt struct {
	tokens   []int32
	segments []int
}

// segmentsOf returns the starts that a call of rows from to to takes along.
func (p prompt) segmentsOf(from, to int) []int {
	first := 0
	for first+1 < len(p.segments) && p.segments[first+1] <= from {
		first++
	}
	end := first + 1
	for end < len(p.segments) && p.segments[end] < to {
		end++
	}
	return p.segments[first:end]
}

// edges returns the positions at which the prompt may be cut: the grid of its
// segments, and both ends.
func (p prompt) edges() []int {
	edges := []int{}
	for i, start := range p.segments {
		end := len(p.tokens)
		if i+1 < len(p.segments) {
			end = p.segments[i+1]
		}
		for at := start; at < end; at += backend.SubChunk {
			edges = append(edges, at)
		}
	}
	return append(edges, len(p.tokens))
}

// calls returns the ends of the fewest calls of at most chunk rows from position
// from on.
func (p prompt) calls(from, chunk int) []int {
	var ends []int
	for _, edge := range p.edges() {
		switch {
		case edge <= from:
		case len(ends) > 0 && edge <= from+chunk:
			ends[len(ends)-1] = edge
		default:
			if len(ends) > 0 {
				from = ends[len(ends)-1]
			}
			ends = append(ends, edge)
		}
	}
	return ends
}

// run is a state under way.
type run struct {
	t     testing.TB
	model *model.Model
	state backend.State
	last  backend.Step
}

func newRun(t testing.TB, m *model.Model) *run {
	return &run{t: t, model: m, state: newState(t, m, 2048)}
}

// prefill evaluates the prompt from where the state is to position to. Only the
// prompt's last call has logits.
func (r *run) prefill(p prompt, to int) {
	r.t.Helper()
	from := r.state.Len()
	step, err := r.model.Prefill(r.state, p.tokens[from:to], p.segmentsOf(from, to), to == len(p.tokens))
	if err != nil {
		r.t.Fatal(err)
	}
	r.last = step
}

// prefillBy cuts the rest of the prompt into calls of at most chunk rows.
func (r *run) prefillBy(p prompt, chunk int) {
	r.t.Helper()
	for _, to := range p.calls(r.state.Len(), chunk) {
		r.prefill(p, to)
	}
}

// decode evaluates one token.
func (r *run) decode(token int32) { r.step(r.model.Decode(r.state, token)) }

// follow evaluates the choice of the last call, without reading it.
func (r *run) follow() { r.step(r.model.Follow(r.state)) }

func (r *run) step(s backend.Step, err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
	r.last = s
}

// finish notes the logits and the state's contents, then decodes a few greedy
// tokens and notes their logits too.
func (r *run) finish() outcome {
	r.t.Helper()
	o := r.contents()
	o["logits"] = slices.Clone(r.last.Logits())
	for i := range 3 {
		r.decode(r.last.Argmax())
		o[fmt.Sprintf("logits after step %d", i)] = slices.Clone(r.last.Logits())
	}
	return o
}

// contents copies the state.
func (r *run) contents() outcome {
	s, ok := r.state.(Inspector)
	if !ok {
		r.t.Fatalf("%T shows no contents", r.state)
	}
	o := outcome{}
	for i := range r.model.Config().Layers {
		if r.model.Config().FullAttention(i) {
			o[fmt.Sprintf("keys of layer %d", i)] = s.Keys(i)
			o[fmt.Sprintf("values of layer %d", i)] = s.Values(i)
		} else {
			o[fmt.Sprintf("recurrent state of layer %d", i)] = s.Recurrent(i)
			o[fmt.Sprintf("conv state of layer %d", i)] = s.Conv(i)
		}
	}
	return o
}
