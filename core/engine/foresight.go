package engine

import "errors"

// foresight is a prompt that will most likely be the beginning of the next.
type foresight struct {
	prompt []int32
	keep   []int
	key    string
}

// Anticipate tells the engine how the next prompt of a conversation will most
// likely begin: the finished reply in the form that the template gives it once
// it is history. With nothing else to do the engine prefills it, and stops
// within one call when a request comes. The last call of many wins.
func (e *Engine) Anticipate(prompt []int32, keep []int, key string) {
	if len(prompt) == 0 || len(prompt) >= e.o.MaxSeq || e.o.CacheEntries == 0 {
		return
	}
	e.mu.Lock()
	e.foreseen = &foresight{prompt, keep, key}
	e.mu.Unlock()
	e.notify()
}

// anticipate prefills what was foreseen, if anything was. It reports whether
// it did.
func (w *worker) anticipate() bool {
	w.mu.Lock()
	f := w.foreseen
	w.foreseen = nil
	w.mu.Unlock()
	if f == nil || w.model == nil || w.cache.has(f.prompt) {
		return false
	}
	err := w.guard(func() error {
		return w.withSession(f.prompt, f.key, func(s *session) error {
			if _, err := s.prefill(w.undisturbed, f.keep, w.o.PrefillChunk, func(int) {}); err != nil {
				return err
			}
			if n := len(f.prompt); s.grid.isEdge(n) {
				s.makeRoom([]int{n}, f.keep)
				return s.save()
			}
			return nil
		})
	})
	if errors.Is(err, errDisturbed) {
		w.mu.Lock()
		if w.foreseen == nil {
			w.foreseen = f // until a generation comes, which makes it stale
		}
		w.mu.Unlock()
	} else if err != nil {
		w.o.Log.Error("engine: prefill ahead", "error", err)
	}
	return true
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
