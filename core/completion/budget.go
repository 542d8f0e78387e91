package completion

import (
	"slices"

	"calla/core/chat"
	"calla/core/engine"
)

// thinkBudget closes the think block when the thought has had its tokens.
type thinkBudget struct {
	budget int
	end    int32   // </think>
	close  []int32 // what closes the block
}

// guide returns what steers a request's generation, or nil.
func (s *Service) guide(r Request, p prompt) engine.Guide {
	if !p.inThink || r.ThinkingBudget <= 0 {
		return nil
	}
	return &thinkBudget{budget: r.ThinkingBudget, end: s.ids[chat.ThinkEnd], close: s.endThink}
}

// Next implements engine.Guide.
func (b *thinkBudget) Next(generated []int32) (engine.Choice, error) {
	i := len(generated) - b.budget
	if i < 0 || i >= len(b.close) || slices.Contains(generated[:b.budget], b.end) {
		return engine.Choice{}, nil
	}
	return engine.Choice{Forced: true, Token: b.close[i]}, nil
}
