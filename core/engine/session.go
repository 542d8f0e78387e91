package engine

import (
	"errors"
	"slices"
	"time"

	"calla/core/backend"
)

// session is one timeline on its way: an entry of the prefix cache, taken out
// of it, and what is to become of it.
type session struct {
	*entry
	w      *worker
	prompt []int32
	grid   grid
	cached int
	miss   *CacheMiss
	spoilt bool // the state is of no use to others
}

// withSession takes the best start for a prompt out of the cache, runs f on it
// and gives it back. Where a fault of the device, or a panic, left the state in
// doubt, it is dropped.
func (w *worker) withSession(prompt []int32, key string, f func(*session) error) error {
	s := &session{w: w, prompt: prompt, grid: newGrid(prompt, w.o.Turn)}
	h := w.cache.find(prompt, s.grid, key)
	e, err := w.cache.take(h, key, w.newState)
	if err != nil {
		return &DeviceError{err}
	}
	s.entry, s.cached, s.miss = e, h.length, h.miss
	sound := false
	defer func() {
		if sound && w.keeps() {
			w.cache.put(e)
		} else {
			e.close()
		}
		w.meter.cached(w.cache)
	}()
	err = f(s)
	var fault *DeviceError
	sound = !s.spoilt && !errors.As(err, &fault) && !errors.Is(err, ErrNotANumber)
	return err
}

// prefill evaluates what the session's state lacks of the prompt, and leaves
// snapshots on the way. Before each call it asks alive whether to go on; a
// prefill that is cut short keeps what it has evaluated.
func (s *session) prefill(alive func() error, keep []int, progress func(done int)) (backend.Step, error) {
	from, n := s.state.Len(), len(s.prompt)
	stops := s.makeRoom(landmarks(s.grid, from, n, keep), keep)
	var step backend.Step
	for from < n {
		end := s.grid.callEnd(from, n, s.w.pace.rows, stops)
		progress(from)
		if err := alive(); err != nil {
			return nil, s.interrupted(err, keep)
		}
		if err := s.rest(s.prompt[from]); err != nil {
			return nil, err
		}
		var err error
		start := time.Now()
		step, err = s.w.call(end-from, func() (backend.Step, error) {
			return s.w.model.Prefill(s.state, s.prompt[from:end], s.grid.covering(from, end), end == n)
		})
		if err != nil {
			return nil, err
		}
		s.w.pace.took(end-from, time.Since(start))
		s.tokens = append(s.tokens, s.prompt[from:end]...)
		from = end
		if _, at := slices.BinarySearch(stops, end); at {
			s.save()
		}
	}
	progress(n)
	return step, nil
}

// interrupted keeps the state of a prefill that was cut short, so that a retry
// does not start again, and returns why it was.
func (s *session) interrupted(why error, keep []int) error {
	n := s.state.Len()
	if n == 0 || len(s.snaps) > 0 && s.snaps[len(s.snaps)-1].Len() == n {
		return why
	}
	if len(s.makeRoom([]int{n}, keep)) > 0 {
		s.save()
	}
	return why
}

// save adds a snapshot of the state as it is. Without memory for it there is
// none: what a later prompt reuses is less, and nothing else is lost.
func (s *session) save() {
	snap, err := s.state.Save()
	if err != nil {
		s.w.o.Log.Warn("engine: no snapshot", "tokens", s.state.Len(), "error", err)
		return
	}
	s.snaps = append(s.snaps, newSnapshot(snap))
}

// makeRoom drops the snapshots that those to come will displace, and returns
// which of those to come are worth taking.
func (s *session) makeRoom(coming, keep []int) []int {
	if !s.w.keeps() {
		return nil // nobody will come back to them
	}
	var at []int
	for _, x := range s.snaps {
		at = append(at, x.Len())
	}
	stay := survivors(append(at, coming...), keep, snapshotsPerEntry)
	s.snaps = slices.DeleteFunc(s.snaps, func(x snapshot) bool {
		_, found := slices.BinarySearch(stay, x.Len())
		if !found {
			x.release()
		}
		return !found
	})
	return slices.DeleteFunc(coming, func(p int) bool {
		_, found := slices.BinarySearch(stay, p)
		return !found
	})
}
