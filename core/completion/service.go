package completion

import (
	"context"
	"fmt"
	"sync"

	"calla/core/chat"
	"calla/core/engine"
	"calla/core/tokenizer"
)

// Service makes completions with one engine. It is safe for concurrent use.
type Service struct {
	engine    *engine.Engine
	tokenizer *tokenizer.Tokenizer
	control   map[int32]string // the template's control tokens by id
	ids       map[string]int32 // and the other way round
	endThink  []int32          // what closes a think block in the template
	// afterThink is the part of endThink that comes after </think>.
	afterThink []int32
	grammars   grammars
}

// New makes a service. The tokenizer must know the template's control tokens.
func New(e *engine.Engine, t *tokenizer.Tokenizer) (*Service, error) {
	s := &Service{engine: e, tokenizer: t, control: map[int32]string{}, ids: map[string]int32{}}
	for _, c := range chat.ControlTokens() {
		id, ok := t.TokenID(c)
		if !ok {
			return nil, fmt.Errorf("completion: the tokenizer has no token %s, which the chat template writes", c)
		}
		s.control[id], s.ids[c] = c, id
	}
	s.endThink = append(s.endThink, t.Encode("\n")...)
	s.endThink = append(s.endThink, s.ids[chat.ThinkEnd])
	s.afterThink = t.Encode("\n\n")
	s.endThink = append(s.endThink, s.afterThink...)
	s.grammars.vocabulary = sync.OnceValues(s.vocabulary)
	go s.grammars.vocabulary() // so that no request waits for it
	return s, nil
}

// EngineOptions returns what an engine must know of a tokenizer: how many
// tokens there are, which end a turn, and which end a completion. Stop are the
// checkpoint's stop tokens.
func EngineOptions(t *tokenizer.Tokenizer, stop []int32) (vocab int, turn engine.Turn, stops []int32, err error) {
	end, ok := t.TokenID(chat.TurnEnd)
	newline := t.Encode("\n")
	if !ok || len(newline) != 1 {
		return 0, engine.Turn{}, nil, fmt.Errorf("completion: the tokenizer has no token %s or none for a newline", chat.TurnEnd)
	}
	stops = append(stops, stop...)
	stops = append(stops, end)
	if id, ok := t.EOS(); ok {
		stops = append(stops, id)
	}
	if id, ok := t.TokenID(endOfText); ok {
		stops = append(stops, id)
	}
	return t.VocabSize(), engine.Turn{EndOfTurn: end, Newline: newline[0]}, stops, nil
}

// endOfText ends a text, and so a completion, though some checkpoints name
// only the end of a turn.
const endOfText = "<|endoftext|>"

// Encode returns the tokens of the prompt that Start would evaluate.
func (s *Service) Encode(r Request) ([]int32, error) {
	p, err := s.prompt(r)
	return p.tokens, err
}

// Decode returns the text of tokens, control tokens spelt out.
func (s *Service) Decode(tokens []int32) (string, error) {
	for i, t := range tokens {
		if t < 0 || int(t) >= s.tokenizer.VocabSize() {
			return "", &engine.TokenError{Position: i, Token: t, Vocab: s.tokenizer.VocabSize()}
		}
	}
	return s.tokenizer.Decode(tokens, false), nil
}

// Start begins a completion. It fails where the conversation can't be rendered
// (*chat.Error), where a schema can't be held to (*schema.Error), and for each
// reason of engine.Submit. The completion ends when ctx does.
func (s *Service) Start(ctx context.Context, r Request) (*Completion, error) {
	p, err := s.prompt(r)
	if err != nil {
		return nil, err
	}
	steer, err := s.steering(r, p)
	if err != nil {
		return nil, err
	}
	var guide engine.Guide
	if steer != nil { // a nil *steering would be a guide
		guide = steer
	}
	g, err := s.engine.Submit(ctx, engine.Request{
		Prompt:    p.tokens,
		MaxTokens: r.MaxTokens,
		Sampling:  r.Sampling,
		LogProbs:  r.LogProbs,
		Guide:     guide,
		Keep:      p.keep,
		CacheKey:  r.CacheKey,
	})
	if err != nil {
		return nil, err
	}
	return newCompletion(ctx, s, r, p, g, steer), nil
}
