package apple

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/metal"
)

// TestFill lays a list out in two command buffers of which one has two encoders.
func TestFill(t *testing.T) {
	a := &metal.Buffer{Name: "a", Size: 100, Native: &memory{7}}
	b := &metal.Buffer{Name: "b", Size: 100, Native: &memory{8}}
	one, two := metal.Kernel{Name: "one"}, metal.Kernel{Name: "two", Constants: [4]uint32{5}}
	pipelines := map[metal.Kernel]pipeline{one: {handle: 11}, two: {handle: 12}}
	l := &metal.List{Dispatches: []metal.Dispatch{
		{Kernel: one, Args: []byte{1, 2, 3, 4}, Buffers: []metal.Binding{{Buffer: a}, {Buffer: b, Offset: 32}}, Grid: [3]uint32{2, 3, 1}, Threads: 64, Barrier: true},
		{Kernel: two, Args: []byte{5, 6}, Buffers: []metal.Binding{{Buffer: b}}, Grid: [3]uint32{1, 1, 1}, Threads: 32, Shared: 16, Barrier: true},
		{Kernel: two, Args: []byte{7}, Grid: [3]uint32{1, 1, 1}, Threads: 32},
		{Kernel: one, Grid: [3]uint32{1, 1, 1}, Threads: 32, Barrier: true},
	}}
	spans := []span{{first: 0, end: 1, command: true}, {first: 1, end: 3}, {first: 3, end: 4, command: true}}
	label(l, spans)
	labels := "dispatch 0 of 4, one\x00dispatches 1 to 2 of 4, two[5] to two[5]\x00dispatch 3 of 4, one\x00"
	for _, ordered := range []bool{false, true, true} {
		var got batch
		got.fill(l, spans[:1], pipelines, true) // what was there before
		got.fill(l, spans, pipelines, ordered)
		first := uint32(newCommand | newEncoder | updatesFence)
		if ordered {
			first |= waitsFence
		}
		want := batch{
			records: []record{
				{Pipeline: 11, Flags: first, Bindings: 2, ArgsBytes: 4, Groups: [3]uint32{2, 3, 1}, Threads: 64},
				{Pipeline: 12, Flags: newEncoder | waitsFence, Binding: 2, Bindings: 1, Args: 16, ArgsBytes: 2, Groups: [3]uint32{1, 1, 1}, Threads: 32, Shared: 16, Label: 21},
				{Pipeline: 12, Flags: updatesFence, Binding: 3, Args: 32, ArgsBytes: 1, Groups: [3]uint32{1, 1, 1}, Threads: 32},
				{Pipeline: 11, Flags: newCommand | newEncoder | waitsFence | updatesFence, Binding: 3, Args: 48, Groups: [3]uint32{1, 1, 1}, Threads: 32, Label: 62},
			},
			bindings: []binding{{7, 0}, {8, 32}, {8, 0}},
			args:     append(append(append([]byte{1, 2, 3, 4}, make([]byte, 12)...), append([]byte{5, 6}, make([]byte, 14)...)...), append([]byte{7}, make([]byte, 15)...)...),
			labels:   []byte(labels),
			commands: 2,
		}
		if d := cmp.Diff(want, got, cmp.AllowUnexported(batch{})); d != "" {
			t.Errorf("ordered %v: %s", ordered, d)
		}
	}
}
