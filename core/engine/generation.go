package engine

import (
	"context"
	"io"
	"sync"
	"time"
)

// Generation is one request on its way. Its methods may be called from any
// goroutine; only one may read.
type Generation struct {
	request   Request
	submitted time.Time
	ctx       context.Context
	cancel    context.CancelFunc
	detach    func() bool   // undoes what was to happen when ctx ends
	loading   time.Duration // spent waiting for the model; the worker's

	mu     sync.Mutex
	events []Event // not yet read
	ready  chan struct{}
	stop   bool // asked for by Stop
	done   bool
	result Result
	err    error
}

func newGeneration(ctx context.Context, r Request) *Generation {
	g := &Generation{request: r, submitted: time.Now(), ready: make(chan struct{}, 1)}
	g.ctx, g.cancel = context.WithCancel(ctx)
	return g
}

// Next returns the next event. It waits until there is one, and returns io.EOF
// after the last. The engine never waits for a slow reader: progress that was
// not read gives way to newer progress of its stage, tokens are kept.
func (g *Generation) Next(ctx context.Context) (Event, error) {
	for {
		g.mu.Lock()
		if len(g.events) > 0 {
			e := g.events[0]
			g.events = g.events[1:]
			g.mu.Unlock()
			return e, nil
		}
		done, err := g.done, g.err
		g.mu.Unlock()
		if done {
			if err == nil {
				err = io.EOF
			}
			return Event{}, err
		}
		select {
		case <-g.ready:
		case <-ctx.Done():
			return Event{}, context.Cause(ctx)
		}
	}
}

// Result returns how the generation ended. It is valid after Next returned
// io.EOF.
func (g *Generation) Result() Result {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.result
}

// Stop ends the generation as if it had come to a stop token. Tokens that were
// on their way may still arrive before io.EOF.
func (g *Generation) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stop = true
}

// Cancel ends the generation with an error. It is harmless after the end.
func (g *Generation) Cancel() { g.cancel() }

func (g *Generation) stopping() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.stop
}

// send queues an event for the reader.
func (g *Generation) send(e Event) {
	g.mu.Lock()
	if g.done {
		g.mu.Unlock()
		return
	}
	if n := len(g.events); e.Token < 0 && n > 0 && g.events[n-1].Token < 0 && g.events[n-1].Progress.Stage == e.Progress.Stage {
		g.events[n-1] = e
	} else {
		g.events = append(g.events, e)
	}
	g.mu.Unlock()
	g.wake()
}

func (g *Generation) progress(s Stage, done, total int64) {
	g.send(Event{Token: -1, Progress: Progress{s, done, total}})
}

// finish ends the generation. Only the first end counts.
func (g *Generation) finish(r Result, err error) {
	g.mu.Lock()
	if !g.done {
		g.result, g.err, g.done = r, err, true
	}
	g.mu.Unlock()
	g.cancel()
	g.wake()
}

func (g *Generation) wake() {
	select {
	case g.ready <- struct{}{}:
	default:
	}
}
