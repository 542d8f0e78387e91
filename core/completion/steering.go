package completion

import (
	"calla/core/chat"
	"calla/core/engine"
	"calla/core/grammar"
)

// steering is the guide of a generation: it bounds the thought and holds what
// comes after it to a grammar. It belongs to the engine's worker, until the
// generation has ended.
type steering struct {
	held
	budget     thinkBudget
	control    map[string]int32
	separators []int32 // what the template has after a thought
	single     bool    // after a call there is no other

	phase   phase
	seen    int  // tokens read
	closing bool // the budget ends the thought
	after   int  // tokens since the thought's end
	matcher *grammar.Matcher

	mask grammar.Mask // of the choice to come
}

// phase is what is being written.
type phase uint8

const (
	thinking phase = iota
	between        // the separators after a thought
	free           // anything
	bound          // what the matcher says
	over           // nothing more
)

// steering returns the guide of a request, or nil where it needs none.
func (s *Service) steering(r Request, p prompt) (*steering, error) {
	h, err := s.held(r)
	if err != nil {
		return nil, err
	}
	g := &steering{held: h, control: s.ids, separators: s.afterThink, single: r.SingleCall}
	if p.inThink {
		g.budget = thinkBudget{budget: max(r.ThinkingBudget, 0), close: s.endThink}
	}
	if h == (held{}) && g.budget.budget == 0 {
		return nil, nil
	}
	g.mask = grammar.NewMask(s.tokenizer.VocabSize())
	if !p.inThink {
		g.answer()
	}
	return g, nil
}

// answer begins what comes after the thought.
func (g *steering) answer() {
	g.phase = free
	if g.whole != nil {
		g.phase, g.matcher = bound, g.whole.Matcher()
	}
}

// Next implements engine.Guide.
func (g *steering) Next(generated []int32) (engine.Choice, error) {
	for ; g.seen < len(generated); g.seen++ {
		if err := g.read(generated[g.seen]); err != nil {
			return engine.Choice{}, err
		}
	}
	switch g.phase {
	case thinking:
		return g.think(), nil
	case between:
		return engine.Choice{Forced: true, Token: g.separators[g.after]}, nil
	case bound:
		err := g.matcher.Allowed(g.mask)
		return engine.Choice{Allowed: g.mask}, err
	case over:
		clear(g.mask)
		g.mask.Add(g.control[chat.TurnEnd])
		return engine.Choice{Allowed: g.mask}, nil
	}
	return engine.Choice{}, nil
}

// think is the choice within the thought. Where the answer is held to a grammar,
// a thought goes on to its end: no end of turn and no call comes before.
func (g *steering) think() engine.Choice {
	if token, ok := g.budget.forced(g.seen); ok {
		g.closing = true
		return engine.Choice{Forced: true, Token: token}
	}
	if g.whole == nil {
		return engine.Choice{}
	}
	g.whole.Vocabulary().Text(g.mask)
	g.mask.Add(g.control[chat.ThinkEnd])
	return engine.Choice{Allowed: g.mask}
}

// read takes a token that was generated.
func (g *steering) read(token int32) error {
	switch g.phase {
	case thinking:
		switch {
		case token == g.control[chat.ThinkEnd] && (g.whole != nil || g.closing):
			g.phase = between
		case token == g.control[chat.ThinkEnd]:
			g.answer()
		case token == g.control[chat.CallStart] && g.call != nil:
			g.phase, g.matcher = bound, g.call.Matcher()
		}
	case between:
		if g.after++; g.after == len(g.separators) {
			g.answer()
		}
	case free:
		if token == g.control[chat.CallStart] && g.call != nil {
			g.phase, g.matcher = bound, g.call.Matcher()
		}
	case bound:
		if err := g.matcher.Next(token); err != nil {
			return err
		}
		if g.whole == nil && g.matcher.Over() {
			if g.phase = free; g.single {
				g.phase = over
			}
		}
	}
	return nil
}

// unfinished reports whether an answer that is held to a grammar is not
// complete.
func (g *steering) unfinished() bool {
	if g == nil || g.whole == nil && g.phase != bound {
		return false
	}
	return g.phase != bound || !g.matcher.Complete()
}
