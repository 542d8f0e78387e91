package metal

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/conform"
	"calla/core/model"
	"calla/metal/emulator"
)

// tiny loads the tiny fixture on a driver for the length of the test.
func tiny(t *testing.T, d Driver) *model.Model {
	return conform.Load(t, New(d, Options{}), conform.Tiny(t))
}

// TestModelUnderSanitizers runs a prefill of several segments and a few tokens
// after it, in programs that end at the first race, overflow or undefined
// operation.
func TestModelUnderSanitizers(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	for _, name := range []string{"runner-asan", "runner-tsan"} {
		t.Run(name, func(t *testing.T) {
			m := tiny(t, NewEmulated(startRunner(t, name), emulator.Schedule{Order: 9}))
			s, err := m.NewState(100)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			step, err := m.Prefill(s, []int32{1, 20, 300, 4, 5, 60}, []int{0, 3, 4}, true)
			for i := 0; err == nil && i < 2; i++ {
				if err = step.Wait(); err == nil {
					step, err = m.Follow(s)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// lossy is a driver whose lists fail from some commit on.
type lossy struct {
	Driver
	commits, fail int
	atCommit      bool
}

var errLost = errors.New("the command buffer was lost")

func (d *lossy) Commit(l *List) (Completion, error) {
	d.commits++
	if d.commits < d.fail {
		return d.Driver.Commit(l)
	}
	if d.atCommit {
		return nil, errLost
	}
	return done{errLost}, nil
}

// TestLostList checks that a state whose list was lost says so and is not
// continued, and that others are.
func TestLostList(t *testing.T) {
	for _, atCommit := range []bool{false, true} {
		t.Run(fmt.Sprintf("at commit %v", atCommit), func(t *testing.T) {
			d := &lossy{Driver: NewEmulated(openLibrary(t), emulator.Schedule{Workers: 2}), fail: 2, atCommit: atCommit}
			m := tiny(t, d)
			s, err := m.NewState(10)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if _, err := m.Prefill(s, []int32{1, 2}, []int{0}, true); err != nil {
				t.Fatal(err)
			}
			step, err := m.Decode(s, 3)
			if err == nil {
				err = step.Wait()
			}
			if !errors.Is(err, errLost) || !strings.Contains(err.Error(), "decode of position 2") {
				t.Errorf("error %v, want one that names the step", err)
			}
			if _, err := m.Decode(s, 3); !errors.Is(err, errLost) {
				t.Errorf("next call: error %v, want the state refused", err)
			}
			if _, err := s.Save(); !errors.Is(err, errLost) {
				t.Errorf("Save: error %v, want the state refused", err)
			}
			d.fail = 100
			s.Reset()
			if _, err := m.Prefill(s, []int32{1, 2}, []int{0}, true); err != nil {
				t.Errorf("after a reset: %v", err)
			}
		})
	}
}

// TestLoad checks progress, cancellation and what a model that the kernels do
// not have is told.
func TestLoad(t *testing.T) {
	c, err := checkpoint.Open(conform.Tiny(t), checkpoint.Options{AnySize: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	b := model.Bind(c, 0)
	t.Run("progress", func(t *testing.T) {
		dev := New(NewEmulated(openLibrary(t), emulator.Schedule{}), Options{})
		var last, total int64
		w, err := dev.Load(context.Background(), b, func(done, all int64) {
			if done <= last {
				t.Errorf("progress of %d after %d", done, last)
			}
			last, total = done, all
		})
		if err != nil {
			t.Fatal(err)
		}
		defer w.Close()
		if last != total || total == 0 {
			t.Errorf("progress ended at %d of %d", last, total)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		dev := New(NewEmulated(openLibrary(t), emulator.Schedule{}), Options{})
		stop := errors.New("enough")
		ctx, cancel := context.WithCancelCause(context.Background())
		_, err := dev.Load(ctx, b, func(int64, int64) { cancel(stop) })
		if !errors.Is(err, stop) {
			t.Errorf("error %v, want the cause", err)
		}
	})
	t.Run("a head that no kernel has", func(t *testing.T) {
		other := *b
		other.Config.HeadDim = 96
		_, err := New(paper{}, Options{}).Load(context.Background(), &other, nil)
		if err == nil || !strings.Contains(err.Error(), "head dim 96, the kernels have 64 or 256") {
			t.Errorf("error %v, want one that names the dimension", err)
		}
	})
}

// TestFollowBeyondTheRing follows a step whose slot others have taken since.
func TestFollowBeyondTheRing(t *testing.T) {
	m := tiny(t, NewEmulated(openLibrary(t), emulator.Schedule{Workers: 2}))
	states := make([]backend.State, 2)
	for i := range states {
		s, err := m.NewState(50)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		states[i] = s
	}
	run := func(s backend.State) backend.Step {
		step, err := m.Prefill(s, []int32{1, 2, 3}, []int{0}, true)
		if err != nil {
			t.Fatal(err)
		}
		return step
	}
	first := run(states[0])
	told, err := m.Decode(states[0], first.Argmax())
	if err != nil {
		t.Fatal(err)
	}
	want := told.Argmax()

	states[0].Reset()
	run(states[0])
	for i := range slots + 1 {
		states[1].Reset()
		if _, err := m.Prefill(states[1], []int32{int32(9 + i)}, []int{0}, true); err != nil {
			t.Fatal(err)
		}
	}
	step, err := m.Follow(states[0])
	if err != nil {
		t.Fatal(err)
	}
	if got := step.Argmax(); got != want {
		t.Errorf("token %d after others' calls, want %d", got, want)
	}
}
