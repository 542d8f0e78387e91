package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"calla/core/backend"
	"calla/core/backend/backendtest"
	"calla/core/model"
)

// slowLoad is a loader that a test holds up: it tells progress, says that it
// has begun, and goes on, or fails, with what comes over proceed.
type slowLoad struct {
	begun   chan struct{}
	proceed chan error
	loads   atomic.Int32
}

func newSlowLoad() *slowLoad {
	return &slowLoad{begun: make(chan struct{}, 8), proceed: make(chan error)}
}

func (l *slowLoad) loader(d *backendtest.Device) Loader {
	return func(ctx context.Context, progress func(done, total int64)) (*model.Model, func() error, error) {
		l.loads.Add(1)
		progress(1, 4)
		l.begun <- struct{}{}
		select {
		case err := <-l.proceed:
			if err != nil {
				return nil, nil, err
			}
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		progress(3, 4) // those who came meanwhile are told too
		return loader(d)(ctx, progress)
	}
}

// startLoading runs an engine whose first load has begun.
func startLoading(t *testing.T) (*Engine, *slowLoad, *backendtest.Device) {
	t.Helper()
	l := newSlowLoad()
	d := &backendtest.Device{Vocab: vocab, Next: func([]int32) int32 { return words }}
	e := startWith(t, d, l.loader(d), testOptions())
	<-l.begun
	return e, l, d
}

func TestLoadGoesOnWhenWhoAskedLeaves(t *testing.T) {
	e, l, d := startLoading(t)
	ctx, cancel := context.WithCancel(context.Background())
	first := submit(t, e, ctx, turn(0, 5), 1)
	second := submit(t, e, context.Background(), turn(1, 5), 1)
	cancel()
	if _, err := collect(first); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled while it loads: %v", err)
	}
	if s := e.Status(); s.State != Loading || s.Queue != 1 {
		t.Errorf("after the first left: %s with %d waiting, want loading with 1", s.State, s.Queue)
	}
	l.proceed <- nil
	o, err := collect(second)
	if err != nil || len(o.tokens) != 1 {
		t.Errorf("the one who stayed got %d tokens, %v", len(o.tokens), err)
	}
	if !slices.Contains(o.stages, StageLoading) {
		t.Errorf("stages %v, want loading among them", o.stages)
	}
	if o.Timing.Load <= 0 || o.Timing.Queue < 0 {
		t.Errorf("timing %+v, want a time of loading apart from that of the queue", o.Timing)
	}
	if n := d.Counts().Loads; n != 1 {
		t.Errorf("loaded %d times, want once", n)
	}
}

func TestLoadFailureEndsAllWhoWaitAndTheNextTriesAgain(t *testing.T) {
	e, l, _ := startLoading(t)
	gone := errors.New("shard 3 is gone")
	a, b := submit(t, e, context.Background(), turn(0, 5), 1), submit(t, e, context.Background(), turn(1, 5), 1)
	l.proceed <- gone
	for _, g := range []*Generation{a, b} {
		if _, err := collect(g); !errors.Is(err, gone) {
			t.Errorf("waiting for a load that failed: %v, want why", err)
		}
	}
	if s := e.Status(); s.State != Failed || !strings.Contains(s.Error, "shard 3 is gone") {
		t.Errorf("status is %s, %q", s.State, s.Error)
	}
	c := submit(t, e, context.Background(), turn(2, 5), 1)
	<-l.begun
	l.proceed <- nil
	if o, err := collect(c); err != nil || len(o.tokens) != 1 {
		t.Errorf("after a second load: %d tokens, %v", len(o.tokens), err)
	}
	if s := e.Status(); s.State != Ready || s.Error != "" {
		t.Errorf("status is %s, %q", s.State, s.Error)
	}
}

func TestCloseWhileItLoads(t *testing.T) {
	t.Run("nobody waits", func(t *testing.T) {
		e, _, _ := startLoading(t)
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if s := e.Status().State; s != Stopped {
			t.Errorf("state %s, want stopped", s)
		}
	})
	t.Run("before it began", func(t *testing.T) {
		for range 100 {
			e, err := New(newSlowLoad().loader(&backendtest.Device{}), testOptions())
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Close(context.Background()); err != nil {
				t.Error(err)
			}
		}
	})
	t.Run("who waits is served", func(t *testing.T) {
		e, l, _ := startLoading(t)
		g := submit(t, e, context.Background(), turn(0, 5), 1)
		closed := make(chan error)
		go func() { closed <- e.Close(context.Background()) }()
		untilClosing(t, e)
		l.proceed <- nil
		if o, err := collect(g); err != nil || len(o.tokens) != 1 {
			t.Errorf("%d tokens, %v", len(o.tokens), err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
	t.Run("the last who waits leaves", func(t *testing.T) {
		e, _, _ := startLoading(t)
		ctx, cancel := context.WithCancel(context.Background())
		g := submit(t, e, ctx, turn(0, 5), 1)
		closed := make(chan error)
		go func() { closed <- e.Close(context.Background()) }()
		untilClosing(t, e)
		cancel()
		if _, err := collect(g); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
	t.Run("by a deadline", func(t *testing.T) {
		e, _, _ := startLoading(t)
		g := submit(t, e, context.Background(), turn(0, 5), 1)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
		if _, err := collect(g); !errors.Is(err, ErrStopped) {
			t.Errorf("waiting for a load that Close ended: %v, want ErrStopped", err)
		}
	})
}

func TestModelSmallerThanTheVocabularyIsRefused(t *testing.T) {
	o := testOptions()
	o.Vocab = vocab + 1
	e := startWith(t, &backendtest.Device{Vocab: vocab}, nil, o)
	want := "engine: the tokenizer has 257 tokens, the model logits for 256"
	if err := e.WaitLoaded(context.Background()); err == nil || err.Error() != want {
		t.Errorf("WaitLoaded: %v, want %s", err, want)
	}
}

func TestFailedStaysFailed(t *testing.T) {
	d := &backendtest.Device{LoadError: errors.New("no")}
	o := testOptions()
	o.IdleUnload = time.Millisecond
	e := start(t, d, o)
	if err := e.WaitLoaded(context.Background()); err == nil {
		t.Fatal("loaded")
	}
	time.Sleep(10 * time.Millisecond)
	if s := e.Status().State; s != Failed {
		t.Errorf("after the idle time the state is %s, want failed", s)
	}
}

func TestPanicOfTheLoaderIsAnError(t *testing.T) {
	d := &backendtest.Device{Vocab: vocab}
	e := startWith(t, d, func(context.Context, func(done, total int64)) (*model.Model, func() error, error) {
		panic("no such kernel")
	}, testOptions())
	var device *DeviceError
	if err := e.WaitLoaded(context.Background()); !errors.As(err, &device) {
		t.Errorf("WaitLoaded: %v, want a DeviceError", err)
	}
}

func TestExclusiveThatIsCancelled(t *testing.T) {
	t.Run("while it waits", func(t *testing.T) {
		e, l, _ := startLoading(t)
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := e.WaitLoaded(ctx); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		l.proceed <- nil
	})
	// The caller owns what an audit reports to: it must not return while the
	// worker still uses that.
	t.Run("while it runs", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		d := &backendtest.Device{}
		decoded := 0
		d.Step = func(c backend.Call) error {
			if c.Phase == backend.Decode {
				decoded++
			}
			if decoded == 2*auditSteps { // behind it comes the first finding
				cancel()
				time.Sleep(5 * time.Millisecond) // time for a caller that does not wait
			}
			return nil
		}
		e := start(t, d, testOptions())
		var returned atomic.Bool
		err := e.Audit(ctx, auditPrompt(), func(Finding) {
			if returned.Load() {
				t.Error("a finding came after Audit had returned")
			}
		})
		returned.Store(true)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Audit: %v", err)
		}
		generate(t, e, Request{Prompt: turn(0, 5), MaxTokens: 1}) // lets the audit's calls end
	})
}
