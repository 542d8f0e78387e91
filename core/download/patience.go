package download

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"time"
)

// patience is how long a transfer puts up with what.
type patience struct {
	first, most time.Duration // wait before the second attempt, and before any
	attempts    int           // in a row that bring less than enough
	enough      int64         // bytes of an attempt that was worth it
	// A connection that brings less than trickle bytes within stall, time that
	// we wait ourselves not counted, is given up.
	stall   time.Duration
	trickle int64
	answer  time.Duration // to a request's head
}

// usual ends after about a quarter of an hour without any progress: long enough
// for a router to start again, short enough for somebody to look.
var usual = patience{
	first: time.Second, most: time.Minute, attempts: 20, enough: 64 << 10,
	stall: 30 * time.Second, trickle: 16 << 10, answer: time.Minute,
}

// wait returns how long to wait before attempt n, counted from 1 for the first
// after a failure: twice as long each time, the second half of it by chance, so
// that connections that failed together don't come back together.
func (p patience) wait(n int, after time.Duration, chance func() float64) time.Duration {
	d := p.most
	if shift := n - 1; shift < 30 && p.first<<shift < p.most {
		d = p.first << shift
	}
	d = d/2 + time.Duration(chance()*float64(d/2))
	return max(d, after)
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// chance is the source of jitter.
func chance() float64 { return rand.Float64() }

var errStalled = errors.New("the connection stalled")

// steady reads a body within the bounds of patience and throttle.
type steady struct {
	ctx      context.Context // ends with errStalled where patience does
	body     io.Reader
	patience patience
	throttle *Throttle
	progress func(int64)
	skipping bool // what comes is no progress

	timer *time.Timer
	left  time.Duration // of the stall
	moved int64         // bytes since it began
}

// newSteady returns a reader of a body whose request was made with ctx, which
// stop ends.
func newSteady(ctx context.Context, stop context.CancelCauseFunc, body io.Reader, p patience, t *Throttle, progress func(int64)) *steady {
	timer := time.AfterFunc(time.Hour, func() { stop(errStalled) })
	timer.Stop()
	return &steady{ctx: ctx, body: body, patience: p, throttle: t, progress: progress, timer: timer, left: p.stall}
}

func (s *steady) Read(b []byte) (int, error) {
	begin := time.Now()
	s.timer.Reset(s.left)
	n, err := s.body.Read(b)
	s.timer.Stop()
	if err != nil && s.ctx.Err() != nil {
		err = context.Cause(s.ctx)
	}
	s.left -= time.Since(begin)
	if s.moved += int64(n); s.moved >= s.patience.trickle {
		s.moved, s.left = 0, s.patience.stall
	}
	if !s.skipping {
		s.progress(int64(n))
	}
	if wait := s.throttle.pass(s.ctx, n); err == nil {
		err = wait
	}
	return n, err
}

// skip reads n bytes that are there already.
func (s *steady) skip(n int64) error {
	s.skipping = true
	defer func() { s.skipping = false }()
	if _, err := io.CopyN(io.Discard, s, n); err != nil {
		return err
	}
	return nil
}
