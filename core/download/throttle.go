package download

import (
	"context"
	"sync"

	"golang.org/x/time/rate"
)

// Throttle holds a transfer to a rate, and holds it up. It may be used while the
// transfer runs, from any goroutine, and for several in turn.
type Throttle struct {
	limit *rate.Limiter

	mu     sync.Mutex
	paused chan struct{} // closed by Resume; nil while not paused
}

// NewThrottle returns a throttle with a limit in bytes a second; 0 is none.
func NewThrottle(bytesPerSecond int64) *Throttle {
	t := &Throttle{limit: rate.NewLimiter(rate.Inf, 0)}
	t.SetLimit(bytesPerSecond)
	return t
}

// SetLimit changes the limit.
func (t *Throttle) SetLimit(bytesPerSecond int64) {
	if bytesPerSecond <= 0 {
		t.limit.SetLimit(rate.Inf)
		return
	}
	// A burst of a tenth of a second keeps the rate even, and of 4 KiB keeps a
	// low one from costing a wait for every few bytes.
	t.limit.SetBurst(int(max(bytesPerSecond/10, 4<<10)))
	t.limit.SetLimit(rate.Limit(bytesPerSecond))
}

// Pause stops the transfer until Resume. Connections stay open as long as their
// servers let them; what a server cuts is asked for again.
func (t *Throttle) Pause() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused == nil {
		t.paused = make(chan struct{})
	}
}

// Resume lets the transfer go on.
func (t *Throttle) Resume() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.paused != nil {
		close(t.paused)
		t.paused = nil
	}
}

// Paused says whether the transfer is held up.
func (t *Throttle) Paused() bool { return t.gate() != nil }

func (t *Throttle) gate() chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.paused
}

// pass waits until n bytes more may have been read, or until ctx ends.
func (t *Throttle) pass(ctx context.Context, n int) error {
	for gate := t.gate(); gate != nil; gate = t.gate() {
		select {
		case <-gate:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for n > 0 {
		m := n
		if burst := t.limit.Burst(); burst > 0 {
			m = min(n, burst)
		}
		if err := t.limit.WaitN(ctx, m); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			continue // the burst became smaller meanwhile
		}
		n -= m
	}
	return nil
}
