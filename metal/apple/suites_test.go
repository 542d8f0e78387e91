package apple

import (
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/conform"
	"calla/metal"
)

// TestEdges runs the driver through the calls that every backend refuses, and
// through memory that comes and goes.
func TestEdges(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	conform.Edges(t, conform.Subject{New: func(t testing.TB, o conform.Observe) backend.Device {
		return metal.New(open(t, newFake(t, openMachine(t)), Options{}), metal.Options{Observe: o})
	}})
}

// TestSnapshot brings a state back, in itself and in another, from memory that the
// processor does not see.
func TestSnapshot(t *testing.T) {
	m := tiny(t, open(t, newFake(t, openMachine(t)), Options{}))
	states := make([]backend.State, 2)
	for i := range states {
		s, err := m.NewState(50)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		states[i] = s
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	decode := func(s backend.State) []float32 {
		t.Helper()
		step, err := m.Decode(s, 77)
		must(err)
		must(step.Wait())
		return slices.Clone(step.Logits())
	}
	_, err := m.Prefill(states[0], prompt[:10], []int{0}, true)
	must(err)
	snap, err := states[0].Save()
	must(err)
	defer snap.Close()
	want := decode(states[0])

	must(states[0].Restore(snap))
	if got := decode(states[0]); !slices.Equal(got, want) {
		t.Error("the state itself decodes otherwise")
	}
	must(states[1].CopyKV(states[0], snap.Len()))
	must(states[1].Restore(snap))
	if got := decode(states[1]); !slices.Equal(got, want) {
		t.Error("another state decodes otherwise")
	}
}
