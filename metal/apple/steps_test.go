package apple

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/backend"
	"calla/core/model"
)

// ahead evaluates a prompt and leaves two steps behind it under way.
func ahead(t *testing.T, m *model.Model) (s backend.State, first, second backend.Step) {
	t.Helper()
	s, err := m.NewState(50)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = m.Prefill(s, prompt[:10], []int{0}, true); err == nil {
		if first, err = m.Follow(s); err == nil {
			second, err = m.Follow(s)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	return s, first, second
}

// TestOneStepTooMany stops with a step under way whose token nobody wants: it is
// thrown away with the state or without, leaves nothing, and changes nothing.
func TestOneStepTooMany(t *testing.T) {
	f := newFake(t, openMachine(t))
	m := tiny(t, open(t, f, Options{}))
	want := mustCall(t, m, 1, 2)
	for name, stop := range map[string]func(backend.State) error{
		"the state closed": backend.State.Close,
		"the state emptied": func(s backend.State) error {
			s.Reset()
			if s.Len() != 0 {
				t.Error("it is not empty")
			}
			return s.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			live := f.live()
			s, first, _ := ahead(t, m)
			if first.Argmax() < 0 {
				t.Error("the step before it has no token")
			}
			if err := stop(s); err != nil {
				t.Error(err)
			}
			if n := f.live(); n > live+4 { // the ring's inputs may be new
				t.Errorf("%d handles, %d before: %s", n, live, f.kinds())
			}
			if len(f.run.pending) != 0 {
				t.Errorf("%d dispatches under way", len(f.run.pending))
			}
			if diff := cmp.Diff(want, mustCall(t, m, 1, 2)); diff != "" {
				t.Errorf("what comes after it: %s", diff)
			}
		})
	}
}

// TestStepFails loses a step with another under way behind it: both states say so,
// and others go on with the right bits.
func TestStepFails(t *testing.T) {
	for _, tt := range []struct {
		name string
		ruin func(f *fake)
		mend func(f *fake)
		want string
	}{
		{"an error", func(f *fake) { f.faults.command = map[int]nativeError{f.run.committed - 2: {3, "page fault"}} },
			func(f *fake) { f.faults.command = nil }, "page fault (3)"},
		{"no end", func(f *fake) { f.faults.hangs = true }, func(f *fake) { f.faults.hangs = false }, "not done after 1ns"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, openMachine(t))
			d := open(t, f, Options{})
			m := tiny(t, d)
			want := mustCall(t, m, 1, 2)
			s, first, _ := ahead(t, m)
			d.options.Limit = 1
			f.faults.encoder = -1
			tt.ruin(f)
			wants(t, first.Wait(), "decode of position 10", tt.want)
			if _, err := m.Follow(s); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the state goes on: %v", err)
			}
			tt.mend(f)
			s.Close() // says again what was lost
			if diff := cmp.Diff(want, mustCall(t, m, 1, 2)); diff != "" {
				t.Errorf("another state: %s", diff)
			}
		})
	}
}
