package engine

import "errors"

// foresight is how the next prompt of a conversation will most likely begin.
type foresight struct {
	prompt func() (tokens []int32, keep []int)
	key    string
}

// Anticipate tells the engine how the next prompt of a conversation will most
// likely begin: with the finished reply in the form that the template gives it
// once it is history. With nothing else to do the engine calls prompt and
// prefills what it returns, and stops within one call when a request comes. The
// last call of many wins.
func (e *Engine) Anticipate(key string, prompt func() (tokens []int32, keep []int)) {
	if e.o.CacheEntries == 0 {
		return
	}
	e.mu.Lock()
	if !e.closing {
		e.foreseen = &foresight{prompt, key}
	}
	e.mu.Unlock()
	e.notify()
}

// anticipate prefills what was foreseen, if anything was. It reports whether
// it did.
func (w *worker) anticipate() bool {
	w.mu.Lock()
	f := w.foreseen
	w.foreseen = nil
	w.ahead = f != nil && w.model != nil && w.keeps()
	begin := w.ahead
	w.mu.Unlock()
	if !begin {
		return false
	}
	defer w.attend()()
	err := w.guard(func() error { return w.prefillAhead(f) })
	w.mu.Lock()
	w.ahead = false
	disturbed := errors.Is(err, errDisturbed)
	if disturbed && w.foreseen == nil && !w.closing {
		w.foreseen = f // until a generation comes, which makes it stale
	}
	w.mu.Unlock()
	if err != nil && !disturbed {
		w.o.Log.Error("engine: prefill ahead", "error", err)
	}
	return true
}

func (w *worker) prefillAhead(f *foresight) error {
	prompt, keep := f.prompt()
	n := len(prompt)
	if n == 0 || n >= w.o.MaxSeq || w.cache.has(prompt) {
		return nil
	}
	return w.withSession(prompt, f.key, func(s *session) error {
		if _, err := s.prefill(w.undisturbed, keep, func(int) {}); err != nil {
			return err
		}
		if !s.grid.isEdge(n) {
			return nil
		}
		if len(s.makeRoom([]int{n}, keep)) > 0 {
			s.save()
		}
		return nil
	})
}

var errDisturbed = errors.New("engine: a request came")

// undisturbed returns errDisturbed once there is other work.
func (w *worker) undisturbed() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closing || len(w.queue) > 0 {
		return errDisturbed
	}
	return nil
}
