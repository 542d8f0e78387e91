package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"calla/core/backend"
)

// generate runs a request on the device, from its prompt to its last token.
func (w *worker) generate(g *Generation) (Result, error) {
	var r Result
	r.Timing.Load = g.loading
	r.Timing.Queue = time.Since(g.submitted) - g.loading
	if err := context.Cause(g.ctx); err != nil {
		return r, err
	}
	err := w.withSession(g.request.Prompt, g.request.CacheKey, func(s *session) error {
		r.PromptTokens, r.CachedTokens, r.Miss = len(s.prompt), s.cached, s.miss
		w.meter.prefilling(r)
		start := time.Now()
		step, err := s.prefill(g.alive(w), g.request.Keep, w.o.PrefillChunk, func(done int) {
			g.progress(StagePrefill, int64(done), int64(r.PromptTokens))
			w.meter.prefilled(done)
		})
		r.Timing.Prefill = time.Since(start)
		if err != nil {
			return err
		}
		start = time.Now()
		err = w.decode(g, s, step, &r)
		r.Timing.Decode = time.Since(start)
		return err
	})
	return r, err
}

// alive returns a check that tells why the generation must end now, or nil.
func (g *Generation) alive(w *worker) func() error {
	return func() error {
		if err := context.Cause(g.ctx); err != nil {
			return err
		}
		if w.ctx.Err() != nil {
			return ErrStopped
		}
		return nil
	}
}

// session is one timeline on its way: an entry of the prefix cache, taken out
// of it, and what is to become of it.
type session struct {
	*entry
	w      *worker
	prompt []int32
	grid   grid
	cached int
	miss   *CacheMiss
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
		if sound {
			w.cache.put(e)
		} else {
			e.close()
		}
		w.meter.cached(w.cache)
	}()
	err = f(s)
	var fault *DeviceError
	sound = !errors.As(err, &fault) && !errors.Is(err, ErrNotANumber)
	return err
}

// prefill evaluates what the session's state lacks of the prompt, and leaves
// snapshots on the way. Before each call it asks alive whether to go on; a
// prefill that is cut short keeps what it has evaluated.
func (s *session) prefill(alive func() error, keep []int, chunk int, progress func(done int)) (backend.Step, error) {
	from, n := s.state.Len(), len(s.prompt)
	stops := s.makeRoom(landmarks(s.grid, from, n, keep), keep)
	var step backend.Step
	for _, end := range s.grid.callEnds(from, n, chunk, stops) {
		progress(from)
		if err := alive(); err != nil {
			return nil, s.interrupted(err, keep)
		}
		var err error
		step, err = s.w.call(end-from, func() (backend.Step, error) {
			return s.w.model.Prefill(s.state, s.prompt[from:end], s.grid.covering(from, end), end == n)
		})
		if err != nil {
			return nil, err
		}
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
	if s.w.o.CacheEntries == 0 {
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

// decode generates tokens, beginning with the logits of the prompt's last one.
func (w *worker) decode(g *Generation, s *session, step backend.Step, r *Result) error {
	limit := w.o.MaxSeq - len(s.prompt)
	if m := g.request.MaxTokens; m > 0 {
		limit = min(limit, m)
	}
	c := newChooser(g.request, w.o.Vocab)
	alive := g.alive(w)
	r.StopToken = -1
	for {
		if err := alive(); err != nil {
			return err
		}
		if g.stopping() {
			r.Reason = FinishStop
			return nil
		}
		t, err := c.next(step.Logits())
		if err != nil {
			return err
		}
		if slices.Contains(w.o.StopTokens, t.Token) {
			r.Reason, r.StopToken = FinishStop, t.Token
			return nil
		}
		r.CompletionTokens++
		g.send(t)
		w.meter.generated(r.CompletionTokens)
		if c.looping {
			r.Reason = FinishLength
			r.Warning = fmt.Sprintf("the same token came %d times without doubt; the completion was ended", loopTokens)
			return nil
		}
		if r.CompletionTokens == limit {
			r.Reason = FinishLength
			return nil
		}
		step, err = w.call(1, func() (backend.Step, error) { return w.model.Decode(s.state, t.Token) })
		if err != nil {
			return err
		}
	}
}

// chooser picks a generation's tokens and describes them.
type chooser struct {
	request   Request
	sampler   *sampler
	vocab     int
	generated []int32
	loop      loopDetector
	looping   bool
}

func newChooser(r Request, vocab int) *chooser {
	return &chooser{request: r, sampler: newSampler(r.Sampling, r.Prompt, vocab), vocab: vocab}
}

// next chooses the next token from the logits of all rows.
func (c *chooser) next(logits []float32) (Event, error) {
	id, err := c.sampler.sample(logits)
	if err != nil {
		return Event{}, err
	}
	if c.request.Guide != nil {
		if forced, ok := c.request.Guide.Next(c.generated); ok {
			id = forced
		}
	}
	c.sampler.accept(id)
	c.generated = append(c.generated, id)
	c.looping = c.loop.looping(id, logits[:c.vocab])
	e := Event{Token: id}
	if c.request.LogProbs >= 0 {
		e.LogProb = logProb(logits[:c.vocab], id, c.request.LogProbs)
	}
	return e, nil
}
