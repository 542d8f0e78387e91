package download

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"calla/core/download/hubtest"
)

// holding makes the hub hold shard 1 back when the first bytes of it are out,
// until release is called.
func (s *site) holding() (begun chan struct{}, release func()) {
	begun, gate := make(chan struct{}), make(chan struct{})
	var once, end sync.Once
	s.hub.Misbehave(faulty(func(n int, r *hubtest.Reply) {
		r.Before = func(sent int) {
			once.Do(func() { close(begun) })
			select {
			case <-gate:
			case <-r.Request.Context().Done():
			}
		}
	}))
	return begun, func() { end.Do(func() { close(gate) }) }
}

// background pulls in a goroutine.
func (s *site) background(ctx context.Context) chan error {
	done := make(chan error, 1)
	go func() {
		_, err := Pull(ctx, s.Options)
		done <- err
	}()
	return done
}

func TestTwoPulls(t *testing.T) {
	s := newSite(t)
	s.patience.stall = time.Minute
	begun, release := s.holding()
	defer release()
	done := s.background(context.Background())
	<-begun
	if _, err := Pull(context.Background(), s.Options); !errors.Is(err, ErrBusy) {
		t.Errorf("a second pull: %v, want ErrBusy", err)
	}
	if _, err := Verify(context.Background(), s.Options); !errors.Is(err, ErrBusy) {
		t.Errorf("a verification beside a pull: %v, want ErrBusy", err)
	}
	if _, err := s.Store.Remove(s.Folder); !errors.Is(err, ErrBusy) {
		t.Errorf("a removal beside a pull: %v, want ErrBusy", err)
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("the first pull: %v", err)
	}
	s.complete()
}

// TestTwoProcesses: the lock holds between processes, and ends with one that is
// killed.
func TestTwoProcesses(t *testing.T) {
	s := newSite(t)
	s.patience.stall = time.Minute
	begun, release := s.holding()
	defer release()
	done := s.background(context.Background())
	<-begun
	if s.kill("bytes written", 1) {
		t.Error("a pull of another process writes beside ours")
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("our pull: %v", err)
	}
	s.complete()
}

func TestPullIsCancelled(t *testing.T) {
	s := newSite(t)
	s.patience.stall = time.Minute
	begun, release := s.holding()
	defer release()
	ctx, cancel := context.WithCancel(context.Background())
	done := s.background(ctx)
	<-begun
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Pull = %v, want context.Canceled", err)
	}
	s.provedOnly()
	s.keepsWhatItHas()
}

// TestPause holds a pull up from outside, as another process does.
func TestPause(t *testing.T) {
	s := newSite(t)
	s.patience.stall = time.Minute
	if err := s.Store.Pause(s.Folder); err == nil {
		t.Error("Pause of a folder that is not there: no error")
	}
	begun, release := s.holding()
	defer release()
	s.Throttle = NewThrottle(0)
	done := s.background(context.Background())
	<-begun
	s.must(s.Store.Pause(s.Folder))
	s.eventually("the pull is paused", s.Throttle.Paused)
	release()
	s.eventually("the events say so", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.events[len(s.events)-1].Paused
	})
	select {
	case err := <-done:
		t.Fatalf("the paused pull ended: %v", err)
	default:
	}
	if s.right(shard1) {
		t.Error("the paused pull went on")
	}
	s.must(s.Store.Resume(s.Folder))
	if err := <-done; err != nil {
		t.Errorf("Pull = %v", err)
	}
	s.complete()
	if err := s.Store.Pause(s.Folder); !errors.Is(err, ErrIdle) {
		t.Errorf("Pause of no pull: %v, want ErrIdle", err)
	}
}

// TestCancelledWhilePaused: the throttle serves the next pull.
func TestCancelledWhilePaused(t *testing.T) {
	s := newSite(t)
	s.patience.stall = time.Minute
	begun, release := s.holding()
	defer release()
	s.Throttle = NewThrottle(0)
	ctx, cancel := context.WithCancel(context.Background())
	done := s.background(ctx)
	<-begun
	s.must(s.Store.Pause(s.Folder))
	s.eventually("the pull is paused", s.Throttle.Paused)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("Pull = %v, want context.Canceled", err)
	}
	s.hub.Misbehave(nil)
	s.pull()
}

// TestPauseEnds: a pull that was paused and killed does not hold up the next.
func TestPauseEnds(t *testing.T) {
	s := newSite(t)
	s.pull()
	s.must(replaceFile(s.Store.pauseMark(s.receipt().Folder), nil))
	s.remove(shard1)
	s.pull()
}

func (s *site) eventually(what string, ok func() bool) {
	s.t.Helper()
	for range 1000 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	s.t.Fatalf("not within ten seconds: %s", what)
}

// TestServerCutsWhilePaused: the pull goes on by asking again.
func TestServerCutsWhilePaused(t *testing.T) {
	s := newSite(t)
	s.Throttle = NewThrottle(0)
	s.Throttle.Pause()
	s.hub.Misbehave(faulty(func(n int, r *hubtest.Reply) {
		if n < 3 {
			r.Cut = 100
		}
	}))
	done := s.background(context.Background())
	time.Sleep(2 * s.patience.stall)
	s.hub.CloseClientConnections()
	s.Throttle.Resume()
	if err := <-done; err != nil {
		t.Errorf("Pull = %v", err)
	}
	s.complete()
}

func TestThrottle(t *testing.T) {
	t.Run("a limit is kept", func(t *testing.T) {
		throttle := NewThrottle(1 << 20)
		begin := time.Now()
		for range 8 {
			if err := throttle.pass(context.Background(), 64<<10); err != nil {
				t.Fatal(err)
			}
		}
		// 512 KiB at 1 MiB a second, of which a tenth of a second is free. There is
		// no upper bound: the machine may be busy.
		if took := time.Since(begin); took < 350*time.Millisecond {
			t.Errorf("half a MiB took %v at 1 MiB a second", took)
		}
	})
	t.Run("more than a burst at once", func(t *testing.T) {
		if err := NewThrottle(100<<20).pass(context.Background(), 15<<20); err != nil {
			t.Error(err)
		}
	})
	t.Run("the limit is lifted", func(t *testing.T) {
		throttle := NewThrottle(1)
		throttle.SetLimit(0)
		if err := throttle.pass(context.Background(), 1<<30); err != nil {
			t.Error(err)
		}
	})
	t.Run("the wait ends with the context", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
		defer cancel()
		if err := NewThrottle(1).pass(ctx, 1<<20); err == nil {
			t.Error("a MiB at a byte a second passed")
		}
		throttle := NewThrottle(0)
		throttle.Pause()
		throttle.Pause()
		if err := throttle.pass(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("pass while paused = %v, want the end of the context", err)
		}
	})
}

// TestLimitedPull is slower than the stall's bound for long stretches, which the
// pull brings about itself and so puts up with.
func TestLimitedPull(t *testing.T) {
	s := newSite(t, hubtest.File{Name: shard1, Content: hubtest.Random(1, 20_000)})
	s.Connections, s.patience.attempts = 1, 1
	s.patience.stall, s.patience.trickle = 200*time.Millisecond, 16<<10
	s.Throttle = NewThrottle(10_000)
	s.pull()
}
