package engine

import (
	"context"
	"errors"
	"slices"
	"sync"

	"calla/core/backend"
)

// ErrChanged is a state that computes something else after the machine slept
// than it did before. A request that ends with it ends with a *DeviceError.
var ErrChanged = errors.New("engine: the state is not what it was before the machine slept")

// sleep is what the worker and those who know of the machine's sleep agree by.
type sleep struct {
	mu      sync.Mutex
	over    chan struct{} // not nil from Suspend to Resume, which closes it
	stopped chan struct{} // closed once the worker has stopped
	rests   bool          // it has
}

// Suspend tells the engine that the machine is about to sleep. It returns when
// the device has nothing to do, which is between two steps, and stays so until
// Resume; or when ctx ends: then the worker stops as soon as it can. Requests
// are taken meanwhile, and wait.
func (e *Engine) Suspend(ctx context.Context) error {
	s := &e.sleep
	s.mu.Lock()
	if s.over == nil {
		s.over, s.stopped, s.rests = make(chan struct{}), make(chan struct{}), false
	}
	stopped := s.stopped
	s.mu.Unlock()
	e.notify()
	select {
	case <-stopped:
		return nil
	case <-e.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Resume tells the engine that the machine is awake.
func (e *Engine) Resume() {
	e.sleep.mu.Lock()
	defer e.sleep.mu.Unlock()
	if e.sleep.over != nil {
		close(e.sleep.over)
		e.sleep.over = nil
	}
}

// wanted reports whether the worker is to stop.
func (s *sleep) wanted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.over != nil
}

// stop says that the worker has stopped. It returns what ends the sleep, or nil
// where there is none.
func (s *sleep) stop() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over == nil {
		return nil
	}
	if !s.rests {
		s.rests = true
		close(s.stopped)
	}
	return s.over
}

// pause waits until the machine has slept, where it is about to. Nothing is on
// the device then, and nobody waits for it.
func (w *worker) pause() {
	over := w.sleep.stop()
	if over == nil {
		return
	}
	w.o.Log.Info("engine: stopped for the machine's sleep")
	w.watch.Stop()
	w.meter.rest()
	select {
	case <-over:
	case <-w.ctx.Done():
	}
}

// rest is pause for a session between two steps, of which the next evaluates a
// token. The state must compute after the sleep what it did before.
func (s *session) rest(token int32) error {
	w := s.w
	if !w.sleep.wanted() {
		return nil
	}
	before, err := w.probe(s.state, token)
	if err != nil {
		return err
	}
	w.pause()
	if err := w.compare(s.state, token, before); err != nil {
		w.doubt = true
		return err
	}
	return nil
}

// doze is rest with nothing to do: what is cached is looked at.
func (w *worker) doze() {
	defer w.attend()()
	if err := w.guard(w.compareCached); err != nil {
		w.doubt = true
	}
	w.reconsider()
}

func (w *worker) compareCached() error {
	var entries []*entry
	if w.model != nil {
		entries = w.cache.lru.Keys()
	}
	before := make([][]float32, len(entries))
	for i, e := range entries {
		var err error
		if before[i], err = w.probe(e.state, 0); err != nil {
			return err
		}
	}
	w.pause()
	for i, e := range entries {
		if err := w.compare(e.state, 0, before[i]); err != nil {
			return err
		}
	}
	return nil
}

// compare probes again, where there was something to probe.
func (w *worker) compare(s backend.State, token int32, before []float32) error {
	if before == nil {
		return nil
	}
	after, err := w.probe(s, token)
	if err == nil && after != nil && firstDifference(before, after) >= 0 {
		err = &DeviceError{ErrChanged}
	}
	return err
}

// probe returns the logits of a token after a state, which is left as it was;
// nil where there is no state yet, no room in it or no memory to undo the step.
func (w *worker) probe(s backend.State, token int32) ([]float32, error) {
	if s.Len() == 0 || s.Len() == s.Cap() {
		return nil, nil
	}
	was, err := s.Save()
	if err != nil {
		return nil, nil
	}
	defer was.Close()
	step, err := w.begin(1, func() (backend.Step, error) { return w.model.Decode(s, token) })
	if err == nil {
		_, err = finished(step, nil)
	}
	if err != nil {
		return nil, err
	}
	logits := slices.Clone(step.Logits())
	if err := s.Restore(was); err != nil {
		return nil, &DeviceError{err}
	}
	return logits, nil
}

// reconsider frees a model of which something was not as before: the next
// request loads it again.
func (w *worker) reconsider() {
	if !w.doubt {
		return
	}
	w.doubt = false
	w.o.Log.Error("engine: the device's memory changed while the machine slept: weights and states freed")
	w.free(Unloaded)
}
