package apple

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/backend"
	"calla/core/conform"
	"calla/core/model"
	"calla/metal"
	"calla/metal/emulator"
)

// built returns the path of what scripts/emulator makes, or skips.
func built(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "..", "build", "emulator", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s: run scripts/emulator --tests first", name)
	}
	return path
}

// openMachine opens the emulated device, or skips.
func openMachine(t testing.TB) emulator.Machine {
	t.Helper()
	m, err := emulator.Open(built(t, "libcalla-emulated.so"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// open starts a driver on a fake.
func open(t testing.TB, f *fake, o Options) *Driver {
	t.Helper()
	d, err := newDriver(f, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// tiny loads the tiny fixture on a driver for the length of the test.
func tiny(t testing.TB, d metal.Driver) *model.Model {
	return conform.Load(t, metal.New(d, metal.Options{}), conform.Tiny(t))
}

// outcome is what a few calls leave.
type outcome struct {
	Tokens    []int32
	Logits    []float32
	Recurrent []float32
}

// prompt's halves are calls of one size. Where a call is out of order it then finds
// what another left in the scratch: other values, but none that lead beyond it.
var prompt = []int32{1, 20, 300, 4, 5, 60, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 2}

// calls evaluates a prompt in so many calls and tokens behind it, with as many
// steps in flight as there may be.
func calls(m *model.Model, parts, tokens int) (o outcome, err error) {
	s, err := m.NewState(200)
	if err != nil {
		return o, err
	}
	defer s.Close()
	var step backend.Step
	for part := range parts {
		rows := len(prompt) / 2
		if step, err = m.Prefill(s, prompt[part*rows:][:rows], []int{part * rows}, part == parts-1); err != nil {
			return o, err
		}
	}
	for range tokens {
		if err != nil {
			return o, err
		}
		var next backend.Step
		next, err = m.Follow(s) // before the step is waited for
		o.Tokens = append(o.Tokens, step.Argmax())
		step = next
	}
	if err == nil {
		err = step.Wait()
	}
	if err != nil {
		return o, err
	}
	o.Logits = slices.Clone(step.Logits())
	o.Recurrent = s.(*metal.State).Recurrent(0)
	return o, nil
}

// mustCall is calls that succeed.
func mustCall(t testing.TB, m *model.Model, parts, tokens int) outcome {
	t.Helper()
	o, err := calls(m, parts, tokens)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// reference is what the calls leave where each dispatch runs alone and in turn.
func reference(t testing.TB, tokens int) outcome {
	return mustCall(t, tiny(t, metal.NewEmulated(openMachine(t), emulator.Schedule{})), 2, tokens)
}

// TestTokens runs the tiny model with dispatches in every order that barriers and
// fences allow, in command buffers of any size: the bits are the same.
func TestTokens(t *testing.T) {
	want := reference(t, 6)
	r := rand.New(rand.NewPCG(5, 7))
	for _, tt := range []struct {
		name   string
		choose func([]*fakeDispatch) *fakeDispatch
		rate   float64 // seconds a threadgroup
		apart  int
	}{
		{"in turn", earliest, 0, 0},
		{"as early as may be", latest, 0, 0},
		{"by lot", func(ready []*fakeDispatch) *fakeDispatch { return ready[r.IntN(len(ready))] }, 0, 0},
		{"in many command buffers", latest, 0.01, 0},
		{"a command buffer each", latest, 1, 0},
		{"an encoder each", latest, 0, 1000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, openMachine(t))
			f.choose = tt.choose
			d := open(t, f, Options{})
			d.careful = tt.apart
			d.pace.rate = tt.rate
			m := tiny(t, d)
			if diff := cmp.Diff(want, mustCall(t, m, 2, 6)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func same(a, b outcome) bool { return cmp.Equal(a, b) }
