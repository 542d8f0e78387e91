package engine

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"calla/core/backend"
	"calla/core/backend/backendtest"
)

// sleeper is a device whose machine falls asleep at a call, once it is told to.
type sleeper struct {
	backendtest.Device
	e       *Engine
	at      func(backend.Call) bool
	fell    chan error // what Suspend returned
	changed atomic.Bool
	calls   atomic.Int64
}

func newSleeper(t *testing.T, ahead bool) *sleeper {
	s := &sleeper{fell: make(chan error, 1)}
	s.Traits.Ahead = ahead
	s.Step = func(c backend.Call) error {
		s.calls.Add(1)
		if s.at != nil && s.at(c) {
			s.at = nil
			go func() { s.fell <- s.e.Suspend(context.Background()) }()
			eventually(t, "the engine hears of the sleep", s.e.sleep.wanted)
		}
		return nil
	}
	s.Logits = func(_ []int32, x []float32) {
		if s.changed.Load() {
			x[len(x)-1] += 1e-3
		}
	}
	s.e = start(t, &s.Device, endless())
	return s
}

// endless are the options of an engine that stops at no token.
func endless() Options {
	o := testOptions()
	o.StopTokens = nil
	return o
}

// night lets the machine sleep, and reports whether the device was left alone.
func (s *sleeper) night(t *testing.T) {
	t.Helper()
	select {
	case err := <-s.fell:
		if err != nil {
			t.Fatalf("Suspend: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the engine did not stop")
	}
	if c := s.Counts(); c.Unread != 0 {
		t.Errorf("%d steps are on the device of a machine that sleeps", c.Unread)
	}
	calls := s.calls.Load()
	time.Sleep(20 * time.Millisecond)
	if n := s.calls.Load(); n != calls {
		t.Errorf("%d calls while the machine slept", n-calls)
	}
	if st := s.e.Status(); st.StepAge != 0 {
		t.Errorf("the device counts as at work for %v", st.StepAge)
	}
}

// after returns what fires at the call of a phase that comes after n others.
func after(n int, p backend.Phase) func() func(backend.Call) bool {
	return func() func(backend.Call) bool {
		left := n
		return func(c backend.Call) bool {
			if c.Phase == p {
				left--
			}
			return left < 0
		}
	}
}

func TestSleepBetweenTwoSteps(t *testing.T) {
	prompt := join(turn(1, 1000), turn(2, 1000), open)
	for _, tt := range []struct {
		name    string
		at      func() func(backend.Call) bool
		changed bool
	}{
		{"in the first call", after(0, backend.Prefill), false},
		{"in a later call", after(2, backend.Prefill), false},
		{"at the first token", after(0, backend.Decode), false},
		{"while decoding", after(7, backend.Decode), false},
		{"memory changes while prefilling", after(2, backend.Prefill), true},
		{"memory changes while decoding", after(7, backend.Decode), true},
	} {
		for _, ahead := range []bool{false, true} {
			t.Run(tt.name, func(t *testing.T) {
				want := generate(t, start(t, &backendtest.Device{}, endless()), Request{Prompt: prompt, MaxTokens: 30})
				s := newSleeper(t, ahead)
				if err := s.e.WaitLoaded(context.Background()); err != nil {
					t.Fatal(err)
				}
				s.at = tt.at()
				g := submit(t, s.e, context.Background(), prompt, 30)
				s.night(t)
				s.changed.Store(tt.changed)
				s.e.Resume()
				got, err := collect(g)
				if tt.changed {
					if !errors.Is(err, ErrChanged) {
						t.Errorf("ended with %v, want ErrChanged", err)
					}
				} else if err != nil || !slices.Equal(got.tokens, want.tokens) {
					t.Errorf("tokens %v, %v; want %v", got.tokens, err, want.tokens)
				}
				s.changed.Store(false)
				again := generate(t, s.e, Request{Prompt: prompt, MaxTokens: 30})
				if !slices.Equal(again.tokens, want.tokens) || again.CachedTokens > 0 == tt.changed {
					t.Errorf("afterwards %d tokens are reused, answer %v; want none after a change, and %v", again.CachedTokens, again.tokens, want.tokens)
				}
				if n := s.Counts().Loads; n > 1 != tt.changed {
					t.Errorf("the model was loaded %d times", n)
				}
			})
		}
	}
}

func TestSleepWithNothingToDo(t *testing.T) {
	prompt := join(turn(1, 100), turn(2, 100), open)
	for _, changed := range []bool{false, true} {
		s := newSleeper(t, true)
		generate(t, s.e, Request{Prompt: prompt, MaxTokens: 3})
		s.fell <- s.e.Suspend(context.Background())
		s.night(t)
		g := submit(t, s.e, context.Background(), prompt, 3) // it waits
		s.changed.Store(changed)
		s.e.Resume()
		o, err := collect(g)
		if err != nil || o.CachedTokens > 0 == changed {
			t.Errorf("memory changed: %v; %d tokens were reused, %v", changed, o.CachedTokens, err)
		}
	}
}

func TestSleepEnds(t *testing.T) {
	t.Run("twice in a row", func(t *testing.T) {
		s := newSleeper(t, false)
		for range 3 {
			s.e.Resume() // of no sleep
			s.fell <- s.e.Suspend(context.Background())
			s.night(t)
			if err := s.e.Suspend(context.Background()); err != nil {
				t.Errorf("told again: %v", err)
			}
			s.e.Resume()
			generate(t, s.e, Request{Prompt: turn(1, 50), MaxTokens: 2})
		}
	})
	t.Run("by the end of the engine", func(t *testing.T) {
		s := newSleeper(t, true)
		s.at = after(3, backend.Decode)()
		g := submit(t, s.e, context.Background(), turn(1, 50), 0)
		s.night(t)
		over, cancel := context.WithCancel(context.Background())
		cancel()
		s.e.Close(over)
		if _, err := collect(g); !errors.Is(err, ErrStopped) {
			t.Errorf("the generation ended with %v, want ErrStopped", err)
		}
		if err := s.e.Suspend(context.Background()); err != nil {
			t.Errorf("Suspend of a closed engine: %v", err)
		}
	})
	t.Run("before a step does", func(t *testing.T) {
		d := newGate()
		e := start(t, &d.Device, testOptions())
		g := submit(t, e, context.Background(), turn(1, 50), 2)
		eventually(t, "it runs", func() bool { return e.Status().Running != nil })
		soon, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		defer cancel()
		if err := e.Suspend(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Suspend with a step under way returned %v", err)
		}
		d.open()
		e.Resume()
		if _, err := collect(g); err != nil {
			t.Error(err)
		}
	})
}
