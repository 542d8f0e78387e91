package engine

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"time"

	"calla/core/backend"
	"calla/core/model"
)

// worker owns the device. Its methods run on its goroutine alone.
type worker struct {
	*Engine
	model  *model.Model // nil while unloaded
	unload func() error
	cache  *prefixCache
}

func newWorker(e *Engine) *worker { return &worker{Engine: e} }

// loop serves the queue until the engine closes.
func (w *worker) loop() {
	defer close(w.done)
	// Metal and CUDA keep state by thread.
	runtime.LockOSThread()
	w.ensureLoaded(nil)
	for {
		j, open := w.next()
		switch {
		case j.generation != nil:
			w.serve(j.generation)
		case j.errand != nil:
			j.errand.done <- w.guard(func() error {
				if err := w.ensureLoaded(nil); err != nil {
					return err
				}
				return j.errand.run(w.ctx, w)
			})
		case !open:
			w.free(Stopped)
			return
		}
	}
}

// next waits for work, and fills the time until it comes. It returns open false
// when the engine closes and nothing is left to do.
func (w *worker) next() (j job, open bool) {
	idle := time.NewTimer(time.Hour)
	defer idle.Stop()
	if w.o.IdleUnload > 0 {
		idle.Reset(w.o.IdleUnload)
	}
	for {
		if j, ok, open := w.pop(); ok || !open {
			return j, open
		}
		if w.anticipate() {
			continue
		}
		select {
		case <-w.wake:
		case <-w.ctx.Done():
		case <-idle.C:
			if w.o.IdleUnload > 0 {
				w.o.Log.Info("engine idle: weights and states freed", "after", w.o.IdleUnload)
				w.free(Unloaded)
			}
		}
	}
}

// pop takes the next job from the queue.
func (w *worker) pop() (j job, ok, open bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing && w.ctx.Err() != nil {
		for _, j := range w.queue {
			j.refuse()
		}
		w.queue = nil
	}
	if len(w.queue) == 0 {
		return job{}, false, !w.closing
	}
	j, w.queue = w.queue[0], w.queue[1:]
	w.running = j.generation
	if j.generation != nil {
		w.foreseen = nil // the conversation went on
	}
	return j, true, true
}

func (j job) refuse() {
	if j.generation != nil {
		j.generation.finish(Result{}, ErrStopped)
	} else {
		j.errand.done <- ErrStopped
	}
}

// serve runs one generation to its end.
func (w *worker) serve(g *Generation) {
	w.meter.begin()
	var r Result
	err := w.guard(func() (err error) {
		r, err = w.generate(g)
		return err
	})
	w.mu.Lock()
	w.running = nil
	w.mu.Unlock()
	w.meter.end(r, err)
	g.finish(r, err)
}

// guard turns a panic into an error: one bad step must not end the process.
func (w *worker) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.o.Log.Error("engine: panic in a step", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = &DeviceError{fmt.Errorf("panic: %v", p)}
		}
	}()
	return f()
}

// ensureLoaded loads the model where it is not. A generation that waits for it
// is told how far it is.
func (w *worker) ensureLoaded(g *Generation) error {
	if w.model != nil {
		return nil
	}
	w.meter.set(Loading)
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	if g != nil {
		defer context.AfterFunc(g.ctx, cancel)()
	}
	m, unload, err := w.load(ctx, func(done, total int64) {
		w.meter.loading(done, total)
		if g != nil {
			g.progress(StageLoading, done, total)
		}
	})
	if err != nil {
		w.meter.fail(err)
		return err
	}
	w.model, w.unload = m, unload
	w.cache = newPrefixCache(w.o.CacheEntries, w.o.cacheBudget(m.Config()))
	w.meter.loaded(m)
	return nil
}

// free gives weights and states back.
func (w *worker) free(s State) {
	if w.model != nil {
		w.cache.drop()
		if err := w.unload(); err != nil {
			w.o.Log.Error("engine: unload", "error", err)
		}
		w.model, w.unload, w.cache = nil, nil, nil
	}
	w.meter.set(s)
}

// newState makes a state for the longest context.
func (w *worker) newState() (backend.State, error) { return w.model.NewState(w.o.MaxSeq) }
