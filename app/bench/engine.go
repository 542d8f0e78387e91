package bench

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"calla/core/engine"
)

// Engine is a loaded engine as a Target. Its prompts are token ids, so that
// their counts are exact. Make the engine without stop tokens: an answer must
// not end before its time.
type Engine struct {
	engine *engine.Engine
	ids    []int32 // that prompts are made of
	runs   int
}

// NewEngine measures an engine with prompts of all its tokens but those that
// have a meaning of their own.
func NewEngine(e *engine.Engine, special []int32) *Engine {
	var ids []int32
	for t := range int32(e.Options().Vocab) {
		if !slices.Contains(special, t) {
			ids = append(ids, t)
		}
	}
	return &Engine{engine: e, ids: ids}
}

// prompt returns tokens drawn at random, the same in every process. The first
// differs from run to run, so that no two share a beginning.
func (t *Engine) prompt(run, n int) []int32 {
	r := rand.New(rand.NewPCG(uint64(n), uint64(run)))
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = t.ids[r.IntN(len(t.ids))]
	}
	tokens[0] = t.ids[run%len(t.ids)]
	return tokens
}

// Run implements Target. Times are the engine's own but for the first token's,
// which is what a caller waits.
func (t *Engine) Run(ctx context.Context, prompt, tokens int) (Sample, error) {
	request := engine.Request{Prompt: t.prompt(t.runs, prompt), MaxTokens: tokens, LogProbs: engine.NoLogProbs}
	t.runs++
	before, start := t.engine.Status(), time.Now()
	g, err := t.engine.Submit(ctx, request)
	if err != nil {
		return Sample{}, err
	}
	var s Sample
	for {
		e, err := g.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			g.Cancel()
			return s, err
		}
		if e.Token >= 0 && s.FirstToken == 0 {
			s.FirstToken = time.Since(start)
		}
	}
	r := g.Result()
	s.Prompt, s.Cached, s.Generated = r.PromptTokens, r.CachedTokens, r.CompletionTokens
	s.Prefill, s.Decode = r.Timing.Prefill, r.Timing.Decode
	s.Others = others(before, t.engine.Status())
	return s, nil
}

// others counts the requests of others that an engine had around one of ours,
// from how it was before and after it.
func others(before, after engine.Status) int {
	n := int(after.Totals.Requests-before.Totals.Requests) - 1 + before.Queue + after.Queue
	if before.Running != nil {
		n++
	}
	return max(n, 0)
}
