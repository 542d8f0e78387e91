package engine

import (
	"runtime"
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
	pace   pace
	doubt  bool // of the device's memory
}

func newWorker(e *Engine) *worker { return &worker{Engine: e} }

// loop serves the queue until the engine closes.
func (w *worker) loop() {
	defer close(w.done)
	// Metal and CUDA keep state by thread.
	runtime.LockOSThread()
	w.prepare()
	for w.await() {
		if !w.prepare() {
			continue
		}
		if j := w.pop(); j != nil {
			w.do(j)
			w.reconsider()
		}
	}
	w.free(Stopped)
}

// await waits for work, and fills the time until it comes. It returns false
// when the engine closes and nothing is left to do.
func (w *worker) await() bool {
	var idle <-chan time.Time // never, where there is nothing to free
	if w.o.IdleUnload > 0 && w.model != nil {
		t := time.NewTimer(w.o.IdleUnload)
		defer t.Stop()
		idle = t.C
	}
	for {
		if w.ctx.Err() != nil {
			w.endAll(ErrStopped)
		}
		w.relieve()
		if w.sleep.wanted() && w.ctx.Err() == nil {
			w.doze()
		}
		w.mu.Lock()
		work, closing := len(w.queue) > 0, w.closing
		w.mu.Unlock()
		if work || closing {
			return work
		}
		if w.anticipate() {
			continue
		}
		select {
		case <-w.wake:
		case <-w.ctx.Done():
		case <-idle:
			w.o.Log.Info("engine idle: weights and states freed", "after", w.o.IdleUnload)
			w.free(Unloaded)
		}
	}
}

// do runs one job to its end.
func (w *worker) do(j *job) {
	defer w.attend()()
	if j.generation != nil {
		w.serve(j.generation)
		return
	}
	err := w.guard(func() error { return j.errand.run(w.ctx, w) })
	w.left()
	j.errand.end(err)
}

// serve runs one generation to its end.
func (w *worker) serve(g *Generation) {
	w.meter.begin()
	var r Result
	err := w.guard(func() (err error) {
		r, err = w.generate(g)
		return err
	})
	w.left()
	w.meter.end(r, err)
	g.finish(r, err)
}

// left notes that no job is on the device.
func (w *worker) left() {
	w.mu.Lock()
	w.running = nil
	w.mu.Unlock()
}

// free gives weights and states back.
func (w *worker) free(s State) {
	if w.model != nil {
		err := w.guard(func() error {
			w.cache.drop()
			return w.unload()
		})
		if err != nil {
			w.o.Log.Error("engine: unload", "error", err)
		}
		w.model, w.unload, w.cache = nil, nil, nil
	}
	w.meter.set(s)
}

// newState makes a state for the longest context.
func (w *worker) newState() (backend.State, error) { return w.model.NewState(w.o.MaxSeq) }
