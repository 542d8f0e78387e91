package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"calla/core/backend"
	"calla/core/backend/backendtest"
	"calla/core/model"
)

// The states that Status tells, and what the device does meanwhile.
func TestStatusTellsTheTruth(t *testing.T) {
	l := newSlowLoad()
	d := newGate()
	d.Vocab = vocab
	o := testOptions()
	o.StuckAfter = 200 * time.Millisecond
	o.IdleUnload = 300 * time.Millisecond
	e := startWith(t, &d.Device, l.loader(&d.Device), o)

	<-l.begun
	if s := e.Status(); s.State != Loading || s.LoadDone != 1 || s.LoadTotal != 4 {
		t.Errorf("while it loads: %s, %d of %d", s.State, s.LoadDone, s.LoadTotal)
	}
	eventually(t, "a load that hangs is stuck", func() bool { return e.Status().State == Stuck })
	l.proceed <- errors.New("no")
	eventually(t, "failed", func() bool { return e.Status().State == Failed })
	if s := e.Status(); s.Error != "no" || s.StepAge != 0 {
		t.Errorf("failed: %+v", s)
	}

	g := submit(t, e, context.Background(), turn(0, 5), 2)
	<-l.begun
	l.proceed <- nil
	eventually(t, "busy", func() bool { return e.Status().State == Busy })
	if s := e.Status(); s.Running == nil || s.Running.Stage != StagePrefill || s.Running.Prompt != len(turn(0, 5)) {
		t.Errorf("busy: %+v", s.Running)
	}
	eventually(t, "stuck", func() bool { return e.Status().State == Stuck })
	if s := e.Status(); !strings.HasPrefix(s.Error, "the device has not answered for") || s.StepAge < o.StuckAfter {
		t.Errorf("stuck: %q, %v", s.Error, s.StepAge)
	}
	if _, err := collect(g); !errors.Is(err, ErrStuck) {
		t.Errorf("its request ended with %v", err)
	}
	d.open()
	eventually(t, "ready", func() bool { return e.Status().State == Ready })
	eventually(t, "unloaded", func() bool { return e.Status().State == Unloaded })
	if s := e.Status(); s.Error != "" || s.StepAge != 0 || s.WeightBytes != 0 {
		t.Errorf("unloaded: %+v", s)
	}
	e.Close(context.Background())
	if s := e.Status().State; s != Stopped {
		t.Errorf("closed: %s", s)
	}
}

func TestStuckDevice(t *testing.T) {
	for _, tt := range []struct {
		name  string
		begin func(t *testing.T, e *Engine) // makes the device hang
	}{
		{"in a generation", func(t *testing.T, e *Engine) {
			g := submit(t, e, context.Background(), turn(0, 5), 1)
			t.Cleanup(func() {
				if _, err := collect(g); !errors.Is(err, ErrStuck) {
					t.Errorf("the request on the device ended with %v, want ErrStuck", err)
				}
			})
		}},
		{"in a prefill ahead", func(_ *testing.T, e *Engine) {
			e.Anticipate("", func() ([]int32, []int) { return turn(0, 90), nil })
		}},
		{"in an audit", func(t *testing.T, e *Engine) {
			go e.Audit(context.Background(), turn(0, 90), func(Finding) { t.Error("a finding of an audit that was ended") })
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := newGate()
			var begun atomic.Int32
			d.Step = func(backend.Call) error { begun.Add(1); <-d.steps; return nil }
			o := testOptions()
			o.StuckAfter = 50 * time.Millisecond
			e := start(t, &d.Device, o)
			if err := e.WaitLoaded(context.Background()); err != nil {
				t.Fatal(err)
			}
			tt.begin(t, e)
			eventually(t, "the device is at work", func() bool { return begun.Load() == 1 })
			waiting := submit(t, e, context.Background(), turn(1, 5), 1)
			_, err := collect(waiting)
			var device *DeviceError
			if !errors.Is(err, ErrStuck) || !errors.As(err, &device) {
				t.Errorf("waiting for a device that is stuck ended with %v, want a DeviceError of ErrStuck", err)
			}
			if _, err := e.Submit(context.Background(), Request{Prompt: turn(2, 5)}); !errors.Is(err, ErrStuck) {
				t.Errorf("Submit to a device that is stuck: %v", err)
			}
			if err := e.WaitLoaded(context.Background()); !errors.Is(err, ErrStuck) {
				t.Errorf("WaitLoaded of a device that is stuck: %v", err)
			}
			d.open()
			eventually(t, "the device comes back", func() bool { return e.Status().State == Ready })
			if o := generate(t, e, Request{Prompt: turn(3, 5), MaxTokens: 2}); len(o.tokens) != 2 {
				t.Errorf("after that %d tokens, want 2", len(o.tokens))
			}
		})
	}
}

// A device that takes long for each call, but answers, is not stuck.
func TestSlowDeviceIsNotStuck(t *testing.T) {
	d := &backendtest.Device{Next: func([]int32) int32 { return words }}
	d.Step = func(c backend.Call) error {
		if c.Phase == backend.Prefill {
			time.Sleep(time.Duration(len(c.Tokens)) * time.Millisecond)
		}
		return nil
	}
	o := testOptions()
	o.StuckAfter = 400 * time.Millisecond // a call of 512 rows has twice that
	e := start(t, d, o)
	if o := generate(t, e, Request{Prompt: turn(0, 1000), MaxTokens: 30}); len(o.tokens) != 30 {
		t.Errorf("%d tokens, want 30", len(o.tokens))
	}
}

func TestCloseDoesNotWaitForAStuckDevice(t *testing.T) {
	d := newGate()
	d.Vocab = vocab
	e, err := New(loader(&d.Device), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	running := submit(t, e, context.Background(), turn(0, 5), 1)
	eventually(t, "it runs", func() bool { return e.Status().Running != nil })
	waiting := submit(t, e, context.Background(), turn(1, 5), 1)
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Close(over); !errors.Is(err, ErrStuck) {
		t.Errorf("Close: %v, want ErrStuck", err)
	}
	for _, g := range []*Generation{running, waiting} {
		if _, err := collect(g); !errors.Is(err, ErrStopped) {
			t.Errorf("a request that Close ended: %v, want ErrStopped", err)
		}
	}
	d.open()
	<-e.done
	if c := d.Counts(); c.States != 0 || c.Weights != 0 {
		t.Errorf("the device came back and was left with %+v", c)
	}
}

// What a panic says, and the arguments in Go's stack traces, may hold tokens.
func TestPanicsKeepTokensToThemselves(t *testing.T) {
	const canary = 47110815
	var log safeBuffer
	var step atomic.Pointer[func()]
	d := &backendtest.Device{Vocab: vocab, Step: func(backend.Call) error {
		if f := step.Load(); f != nil {
			(*f)()
		}
		return nil
	}}
	o := testOptions()
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e := startWith(t, d, func(ctx context.Context, p func(done, total int64)) (*model.Model, func() error, error) {
		return loader(d)(ctx, p)
	}, o)
	for name, f := range map[string]func(){
		"an index out of range": func() { _ = make([]int, 3)[lookup(canary)] },
		"a text":                func() { panic(fmt.Sprintf("no token %d", canary)) },
		"an error":              func() { panic(fmt.Errorf("no token %d", canary)) },
		"an argument":           func() { broken(canary, fmt.Sprint(canary)) },
	} {
		step.Store(&f)
		_, err := collect(submit(t, e, context.Background(), turn(0, 5), 1))
		var device *DeviceError
		if !errors.As(err, &device) {
			t.Fatalf("%s: %v, want a DeviceError", name, err)
		}
		text := err.Error() + log.String()
		for _, form := range []string{fmt.Sprint(canary), fmt.Sprintf("%x", canary)} {
			if strings.Contains(text, form) {
				t.Errorf("%s: the token %s is in %s", name, form, text)
			}
		}
		if !strings.Contains(text, "watch_test.go:") {
			t.Errorf("%s: the place is not in %s", name, text)
		}
	}
}

//go:noinline
func lookup(id int) int { return id }

//go:noinline
func broken(id int, text string) {
	if id > 0 && text != "" {
		panic("broken")
	}
}

// safeBuffer is a log that may be read while it is written.
type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func TestAllowance(t *testing.T) {
	o := Options{StuckAfter: time.Minute}
	var got []time.Duration
	for _, rows := range []int{0, 256, 512, 2048} {
		got = append(got, o.allowance(rows))
	}
	want := []time.Duration{time.Minute, 90 * time.Second, 2 * time.Minute, 5 * time.Minute}
	if !slices.Equal(got, want) {
		t.Errorf("allowances %v, want %v", got, want)
	}
}
