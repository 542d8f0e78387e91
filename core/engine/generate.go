package engine

import (
	"context"
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
		step, err := s.prefill(g.alive(w), g.request.Keep, func(done int) {
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

// decode generates tokens, beginning with the logits of the prompt's last one.
func (w *worker) decode(g *Generation, s *session, step backend.Step, r *Result) error {
	limit := w.o.MaxSeq - len(s.prompt)
	if m := g.request.MaxTokens; m > 0 {
		limit = min(limit, m)
	}
	c := newChooser(g.request, w.o.Vocab, w.model.Tokens() == w.o.Vocab)
	next := steps{w: w, state: s.state, may: w.model.Weights().Traits().Ahead}
	defer func() { s.spoilt = next.discard() != nil }()
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
		t, err := c.next(step)
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
		if next.ahead == nil {
			if err := s.rest(t.Token); err != nil {
				return err
			}
		}
		// The token after the next is wanted if there may be one.
		blind := c.blind() && r.CompletionTokens+1 < limit && !w.sleep.wanted()
		if step, err = next.after(t.Token, blind); err != nil {
			return err
		}
	}
}
