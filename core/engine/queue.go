package engine

import (
	"context"
	"slices"
)

// job is work for the worker: exactly one of the first two fields is set.
type job struct {
	generation *Generation
	errand     *errand
	lost       bool // its caller was told that the device is stuck
}

// errand is work on the model that is no generation. It runs in its turn.
type errand struct {
	run  func(ctx context.Context, w *worker) error
	done chan error // capacity 1
}

// end tells the job's caller that it ended without being done. What comes after
// it is not heard.
func (j *job) end(err error) {
	if j.generation != nil {
		j.generation.finish(Result{}, err)
	} else {
		j.errand.end(err)
	}
}

func (t *errand) end(err error) {
	select {
	case t.done <- err:
	default:
	}
}

// Submit queues a request. It returns at once: with a *ContextError where the
// request does not fit the context, a *TokenError or *SamplingError where it
// can't be run, ErrQueueFull, ErrNoMemory, ErrStopped or ErrStuck where it can't
// now. When ctx ends, so does the generation.
func (e *Engine) Submit(ctx context.Context, r Request) (*Generation, error) {
	if err := e.o.admit(r); err != nil {
		return nil, err
	}
	g := newGeneration(ctx, r)
	if err := e.enqueue(g); err != nil {
		g.cancel()
		return nil, err
	}
	g.detach = context.AfterFunc(g.ctx, func() { e.abandon(g) })
	return g, nil
}

func (e *Engine) enqueue(g *Generation) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.open(); err != nil {
		return err
	}
	if e.pressure.get() == NoMemory {
		return ErrNoMemory
	}
	if e.running != nil || len(e.queue) > 0 {
		n := e.waiting()
		if n >= e.o.Queue {
			return ErrQueueFull
		}
		g.progress(StageQueued, int64(n+1), 0)
	}
	e.queue = append(e.queue, &job{generation: g})
	e.notify()
	return nil
}

// open says why the engine takes no work. The caller holds mu.
func (e *Engine) open() error {
	if e.closing {
		return ErrStopped
	}
	if e.meter.stuck() {
		return &DeviceError{ErrStuck}
	}
	return nil
}

// waiting returns how many generations are queued behind the running one.
func (e *Engine) waiting() int {
	n := 0
	for _, j := range e.queue {
		if j.generation != nil {
			n++
		}
	}
	return n
}

// remove takes a job out of the queue. It reports whether it still waited.
func (e *Engine) remove(is func(*job) bool) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	i := slices.IndexFunc(e.queue, is)
	if i < 0 {
		return false
	}
	e.queue = slices.Delete(e.queue, i, i+1)
	e.abortVainLoad()
	return true
}

// abandon takes a cancelled generation out of the queue, where it still waits.
func (e *Engine) abandon(g *Generation) {
	if e.remove(func(j *job) bool { return j.generation == g }) {
		g.finish(Result{}, context.Cause(g.ctx))
	}
}

// exclusive runs f on the worker in its turn, with the model loaded. Once it
// runs, f itself must look at ctx.
func (e *Engine) exclusive(ctx context.Context, f func(context.Context, *worker) error) error {
	t := &errand{run: f, done: make(chan error, 1)}
	e.mu.Lock()
	if err := e.open(); err != nil {
		e.mu.Unlock()
		return err
	}
	e.queue = append(e.queue, &job{errand: t})
	e.notify()
	e.mu.Unlock()
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
	}
	if e.remove(func(j *job) bool { return j.errand == t }) {
		return context.Cause(ctx)
	}
	return <-t.done // f may use what the caller owns
}

// pop takes the next job from the queue, or nil where none is left.
func (e *Engine) pop() *job {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.queue) == 0 {
		return nil
	}
	e.running, e.queue = e.queue[0], e.queue[1:]
	if e.running.generation != nil {
		e.foreseen = nil // the conversation went on
	}
	n := int64(1)
	for _, j := range e.queue {
		if j.generation != nil {
			j.generation.progress(StageQueued, n, 0)
			n++
		}
	}
	return e.running
}

// endAll ends every job, those that run too, with an error.
func (e *Engine) endAll(err error) {
	e.mu.Lock()
	jobs := e.queue
	e.queue = nil
	if e.running != nil {
		e.running.lost = true
		jobs = append(jobs, e.running)
	}
	e.mu.Unlock()
	for _, j := range jobs {
		j.end(err)
	}
}

func (e *Engine) notify() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
