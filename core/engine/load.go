package engine

import (
	"context"
	"fmt"
	"time"
)

// prepare loads the model where it is not. All who wait are told how far it is,
// and where it fails they are told why: each later request tries again.
//
// A load that was begun goes on when the one who asked for it leaves: others
// may wait for it, and whoever comes next needs it.
func (w *worker) prepare() bool {
	if w.model != nil {
		return true
	}
	defer w.attend()()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.mu.Lock()
	w.abortLoad = cancel
	w.abortVainLoad()
	w.mu.Unlock()

	w.meter.set(Loading)
	start := time.Now()
	err := w.guard(func() error { return w.loadModel(ctx) })
	w.mu.Lock()
	w.abortLoad = nil
	aborted := w.closing && ctx.Err() != nil
	for _, j := range w.queue {
		if g := j.generation; g != nil {
			g.loading = time.Since(later(start, g.submitted))
		}
	}
	w.mu.Unlock()
	switch {
	case err == nil:
		return true
	case aborted:
		w.endAll(ErrStopped)
	default:
		w.meter.fail(err)
		w.endAll(err)
	}
	return false
}

func (w *worker) loadModel(ctx context.Context) error {
	m, unload, err := w.load(ctx, func(done, total int64) {
		w.meter.loading(done, total)
		w.expect(0)
		w.tell(StageLoading, done, total)
	})
	if err != nil {
		return err
	}
	if n := m.Tokens(); w.o.Vocab > n {
		unload()
		return fmt.Errorf("engine: the tokenizer has %d tokens, the model logits for %d", w.o.Vocab, n)
	}
	w.model, w.unload = m, unload
	w.cache = newPrefixCache(w.o.CacheEntries, w.o.cacheBudget(m.Config()))
	w.pace = newPace(w.o.PrefillChunk, m.Weights().Traits().CallTime)
	w.meter.loaded(m)
	return nil
}

// tell tells all generations that wait how far the engine is.
func (e *Engine) tell(s Stage, done, total int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, j := range e.queue {
		if j.generation != nil {
			j.generation.progress(s, done, total)
		}
	}
}

// abortVainLoad ends a load that nobody waits for when the engine closes. The
// caller holds mu.
func (e *Engine) abortVainLoad() {
	if e.closing && len(e.queue) == 0 && e.abortLoad != nil {
		e.abortLoad()
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
