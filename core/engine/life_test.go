package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"calla/core/backend"
	"calla/core/backend/backendtest"
)

// gate is a device whose steps wait until a test lets them go.
type gate struct {
	backendtest.Device
	steps chan struct{}
}

func newGate() *gate {
	g := &gate{steps: make(chan struct{})}
	g.Step = func(backend.Call) error { <-g.steps; return nil }
	g.Next = func([]int32) int32 { return words }
	return g
}

// open lets all steps go from now on.
func (g *gate) open() { close(g.steps) }

func submit(t *testing.T, e *Engine, ctx context.Context, prompt []int32, most int) *Generation {
	t.Helper()
	g, err := e.Submit(ctx, Request{Prompt: prompt, MaxTokens: most, LogProbs: NoLogProbs})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// eventually waits for a condition that another goroutine brings about.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for range 2000 {
		if ok() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Fatalf("never came: %s", what)
}

// untilClosing returns when the engine takes no more work. It leaves none.
func untilClosing(t *testing.T, e *Engine) {
	t.Helper()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	eventually(t, "it closes", func() bool { return errors.Is(e.WaitLoaded(over), ErrStopped) })
}

func TestQueueIsBoundedAndInOrder(t *testing.T) {
	d := newGate()
	o := testOptions()
	o.Queue = 3
	var order []int32 // the word that tells the prompts apart, as the device comes to them
	d.Step = func(c backend.Call) error {
		order = append(order, c.Tokens[3])
		<-d.steps
		return nil
	}
	e := start(t, &d.Device, o)
	var want []int32
	var waiting []*Generation
	for i := range 4 { // one runs, three wait
		prompt := turn(i, 5)
		want = append(want, prompt[3])
		waiting = append(waiting, submit(t, e, context.Background(), prompt, 1))
		if i == 0 {
			eventually(t, "the first runs", func() bool { return e.Status().Running != nil })
		}
		eventually(t, "it waits", func() bool { return e.Status().Queue == i })
	}
	if _, err := e.Submit(context.Background(), Request{Prompt: turn(9, 5)}); !errors.Is(err, ErrQueueFull) {
		t.Errorf("Submit to a full queue: %v, want ErrQueueFull", err)
	}
	d.open()
	for i, g := range waiting {
		o, err := collect(g)
		if err != nil {
			t.Error(err)
		}
		if queued := slices.Contains(o.stages, StageQueued); queued != (i > 0) {
			t.Errorf("request %d was told of stages %v", i, o.stages)
		}
	}
	if !slices.Equal(order, want) {
		t.Errorf("served in the order %v, want %v: first come, first served", order, want)
	}
}

func TestCancelledRequests(t *testing.T) {
	t.Run("while it waits", func(t *testing.T) {
		d := newGate()
		e := start(t, &d.Device, testOptions())
		first := submit(t, e, context.Background(), turn(0, 5), 1)
		eventually(t, "the first runs", func() bool { return e.Status().Running != nil })
		ctx, cancel := context.WithCancel(context.Background())
		second := submit(t, e, ctx, turn(1, 5), 1)
		cancel()
		if _, err := collect(second); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled in the queue: %v", err)
		}
		if n := e.Status().Queue; n != 0 {
			t.Errorf("%d requests wait after the cancel, want none", n)
		}
		d.open()
		if _, err := collect(first); err != nil {
			t.Error(err)
		}
		if c := d.Counts(); c.PrefillRows != len(turn(0, 5)) {
			t.Errorf("%d rows evaluated, want the first request's alone", c.PrefillRows)
		}
	})
	t.Run("within one token", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		d := &backendtest.Device{Next: func([]int32) int32 { return words }}
		d.Step = func(c backend.Call) error {
			if c.Phase == backend.Decode && d.Counts().DecodeRows == 5 {
				cancel()
			}
			return nil
		}
		e := start(t, d, testOptions())
		o, err := collect(submit(t, e, ctx, turn(0, 5), 0))
		if !errors.Is(err, context.Canceled) || len(o.tokens) > 7 {
			t.Errorf("%d tokens and %v after a cancel at the fifth", len(o.tokens), err)
		}
	})
}

func TestStopEndsAsIfByAStopToken(t *testing.T) {
	d := newGate()
	e := start(t, &d.Device, testOptions())
	g := submit(t, e, context.Background(), turn(0, 5), 0)
	d.steps <- struct{}{} // the prefill
	d.steps <- struct{}{} // one token
	g.Stop()
	d.open()
	o, err := collect(g)
	if err != nil || o.Reason != FinishStop || len(o.tokens) > 3 {
		t.Errorf("stopped generation: %d tokens, %+v, %v; want the reason stop at once", len(o.tokens), o.Result, err)
	}
}

func TestFaultsEndOneRequestAndDropItsState(t *testing.T) {
	fault := errors.New("the bus fell off")
	for _, tt := range []struct {
		name string
		step func(backend.Call) error
		want string
	}{
		{"a device error in prefill", func(c backend.Call) error {
			if c.Phase == backend.Prefill {
				return fault
			}
			return nil
		}, "engine: device failed: the bus fell off"},
		{"a device error in decode", func(c backend.Call) error {
			if c.Phase == backend.Decode {
				return fault
			}
			return nil
		}, "engine: device failed: the bus fell off"},
		{"a panic", func(backend.Call) error { panic("index out of range") },
			"engine: device failed: panic (string) in engine.TestFaultsEndOneRequestAndDropItsState.func3 (life_test.go:"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var broken atomic.Bool
			d := &backendtest.Device{Next: func([]int32) int32 { return words }}
			d.Step = func(c backend.Call) error {
				if broken.Load() {
					return tt.step(c)
				}
				return nil
			}
			e := start(t, d, testOptions())
			generate(t, e, Request{Prompt: join(turn(0, 90), open), MaxTokens: 3})
			broken.Store(true)
			_, err := collect(submit(t, e, context.Background(), join(turn(0, 90), turn(1, 90), open), 3))
			var device *DeviceError
			if !errors.As(err, &device) || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("fault: %v, want %s…", err, tt.want)
			}
			broken.Store(false)
			o := generate(t, e, Request{Prompt: join(turn(0, 90), open), MaxTokens: 3})
			if o.CachedTokens != 0 {
				t.Errorf("a state that was in doubt gave %d cached tokens", o.CachedTokens)
			}
		})
	}
}

func TestLogitsThatAreNotNumbers(t *testing.T) {
	d := &backendtest.Device{Logits: func(tokens []int32, logits []float32) {
		if len(tokens) > 20 {
			logits[7] = float32(math.NaN())
		}
	}}
	d.Next = func([]int32) int32 { return words }
	e := start(t, d, testOptions())
	o, err := collect(submit(t, e, context.Background(), turn(0, 5), 0))
	if !errors.Is(err, ErrNotANumber) || len(o.tokens) == 0 {
		t.Errorf("%d tokens, then %v; want some, then ErrNotANumber", len(o.tokens), err)
	}
}

func TestLoopsAreEnded(t *testing.T) {
	d := &backendtest.Device{Next: func([]int32) int32 { return words }}
	e := start(t, d, testOptions())
	o := generate(t, e, Request{Prompt: turn(0, 5), MaxTokens: 5000})
	if o.Reason != FinishLength || o.CompletionTokens != loopTokens || o.Warning == "" {
		t.Errorf("a loop ended with %+v, want length after %d tokens and a warning", o.Result, loopTokens)
	}
	o = generate(t, e, Request{Prompt: turn(0, 5), MaxTokens: 500})
	if o.CompletionTokens != 500 || o.Warning != "" {
		t.Errorf("500 dashes on request ended with %+v", o.Result)
	}
	hesitant := &backendtest.Device{
		Next:   func([]int32) int32 { return words },
		Logits: func(_ []int32, logits []float32) { logits[words+1] = logits[words] - 8 }, // p = 0.99966
	}
	e = start(t, hesitant, testOptions())
	o = generate(t, e, Request{Prompt: turn(0, 5), MaxTokens: 3000})
	if o.CompletionTokens != 3000 || o.Warning != "" {
		t.Errorf("a repetition in doubt ended with %+v after %d tokens", o.Warning, o.CompletionTokens)
	}
}

func TestIdleUnload(t *testing.T) {
	d := &backendtest.Device{Next: func([]int32) int32 { return words }}
	o := testOptions()
	o.IdleUnload = 20 * time.Millisecond
	e := start(t, d, o)
	generate(t, e, Request{Prompt: join(turn(0, 90), open), MaxTokens: 3})
	eventually(t, "unloaded", func() bool { return e.Status().State == Unloaded })
	if c := d.Counts(); c.States != 0 || c.Snapshots != 0 || c.Weights != 0 {
		t.Errorf("unloaded, but the device holds %+v", c)
	}
	got := generate(t, e, Request{Prompt: join(turn(0, 90), open), MaxTokens: 3})
	if !slices.Contains(got.stages, StageLoading) {
		t.Errorf("stages after the unload are %v, want loading among them", got.stages)
	}
	if n := d.Counts().Loads; n != 2 {
		t.Errorf("loaded %d times, want twice", n)
	}
}

func TestCloseDrainsOrCancels(t *testing.T) {
	t.Run("drains", func(t *testing.T) {
		d := newGate()
		e := start(t, &d.Device, testOptions())
		a, b := submit(t, e, context.Background(), turn(0, 5), 2), submit(t, e, context.Background(), turn(1, 5), 2)
		closed := make(chan struct{})
		go func() { e.Close(context.Background()); close(closed) }()
		untilClosing(t, e)
		if _, err := e.Submit(context.Background(), Request{Prompt: turn(2, 5)}); !errors.Is(err, ErrStopped) {
			t.Errorf("Submit to an engine that closes: %v, want ErrStopped", err)
		}
		d.open()
		for _, g := range []*Generation{a, b} {
			if o, err := collect(g); err != nil || len(o.tokens) != 2 {
				t.Errorf("a request before Close ended with %d tokens, %v", len(o.tokens), err)
			}
		}
		<-closed
	})
	t.Run("cancels by a deadline", func(t *testing.T) {
		d := newGate()
		e := start(t, &d.Device, testOptions())
		a, b := submit(t, e, context.Background(), turn(0, 5), 50), submit(t, e, context.Background(), turn(1, 5), 50)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		go d.open()
		e.Close(ctx)
		for _, g := range []*Generation{a, b} {
			if _, err := collect(g); err != nil && !errors.Is(err, ErrStopped) {
				t.Errorf("a request that Close cancelled ended with %v", err)
			}
		}
		if s := e.Status().State; s != Stopped {
			t.Errorf("state %s, want stopped", s)
		}
	})
}

func TestParallelRequestsAnswerAsAlone(t *testing.T) {
	e := start(t, &backendtest.Device{}, testOptions())
	requests := make([]Request, 64)
	want := make([][]int32, len(requests))
	for i := range requests {
		requests[i] = Request{Prompt: join(turn(i%4, 300), turn(i, 20+i), open), MaxTokens: 8, LogProbs: NoLogProbs}
		want[i] = cold(t, requests[i]).tokens
	}
	var all sync.WaitGroup
	for i, r := range requests {
		all.Go(func() {
			g, err := e.Submit(context.Background(), r)
			if err != nil {
				t.Error(err)
				return
			}
			if o, err := collect(g); err != nil || !slices.Equal(o.tokens, want[i]) {
				t.Errorf("request %d under load: %v, %v; alone %v", i, o.tokens, err, want[i])
			}
		})
	}
	all.Wait()
}

func TestSeedDecidesWhateverTheLoad(t *testing.T) {
	seed := uint64(42)
	r := Request{Prompt: join(turn(0, 300), open), MaxTokens: 20, LogProbs: NoLogProbs, Sampling: Sampling{Temperature: 1.5, Seed: &seed}}
	want := cold(t, r).tokens
	e := start(t, &backendtest.Device{}, testOptions())
	for range 3 {
		generate(t, e, Request{Prompt: turn(7, 50), MaxTokens: 4, Sampling: Sampling{Temperature: 1}})
		if got := generate(t, e, r).tokens; !slices.Equal(got, want) {
			t.Fatalf("the same seed gave %v, then %v", want, got)
		}
	}
}
