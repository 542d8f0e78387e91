package engine

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
)

// check refuses parameters outside the ranges of OpenAI's API and of those
// that others added to it.
func (s Sampling) check(vocab int) error {
	for _, p := range []struct {
		name     string
		value    float64
		from, to float64
		want     string
	}{
		{"temperature", s.Temperature, 0, 2, "between 0 and 2"},
		{"top_p", s.TopP, 0, 1, "between 0 and 1"},
		{"min_p", s.MinP, 0, 1, "between 0 and 1"},
		{"presence_penalty", s.PresencePenalty, -2, 2, "between -2 and 2"},
		{"frequency_penalty", s.FrequencyPenalty, -2, 2, "between -2 and 2"},
		{"repetition_penalty", s.RepetitionPenalty, 0, 10, "between 0 and 10"},
	} {
		if !(p.value >= p.from && p.value <= p.to) {
			return &SamplingError{p.name, fmt.Sprintf("%v, want a number %s", p.value, p.want)}
		}
	}
	if s.TopK < 0 {
		return &SamplingError{"top_k", fmt.Sprintf("%d, want 0 or more", s.TopK)}
	}
	for id, b := range s.LogitBias {
		if id < 0 || int(id) >= vocab {
			return &SamplingError{"logit_bias", fmt.Sprintf("names a token that is not in the vocabulary of %d", vocab)}
		}
		if !(b >= -100 && b <= 100) {
			return &SamplingError{"logit_bias", fmt.Sprintf("%v, want a number between -100 and 100", b)}
		}
	}
	return nil
}

// SamplingError is a sampling parameter out of its range.
type SamplingError struct {
	Param string // its name in the API
	Want  string // what it is and what is wanted
}

func (e *SamplingError) Error() string { return "engine: " + e.Param + ": " + e.Want }

// greedyBelow is the temperature under which the largest logit wins: dividing
// by less only overflows.
const greedyBelow = 1e-5

func (s Sampling) greedy() bool { return s.Temperature < greedyBelow }

// plain reports whether the token of the largest logit is the choice.
func (s Sampling) plain() bool { return s.greedy() && !s.adjusts() }

// adjusts reports whether logits are changed before the choice.
func (s Sampling) adjusts() bool {
	return s.PresencePenalty != 0 || s.FrequencyPenalty != 0 ||
		s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1 || len(s.LogitBias) > 0
}

// sampler chooses the tokens of one generation. The order is: logit bias,
// penalties, temperature, top-k, top-p, min-p, draw. The choice depends on the
// parameters, the prompt and the seed alone: it draws once a token.
type sampler struct {
	Sampling
	vocab int     // rows that are tokens; padding behind them is never chosen
	cold  float64 // 1 / Temperature
	rng   *rand.Rand

	prompt map[int32]struct{} // tokens of the prompt, for the repetition penalty
	count  map[int32]int      // tokens generated

	// Scratch memory.
	adjusted []float32
	work     []candidate
	ids      []int32   // of only
	among    []float32 // of only
	weights  []float64
}

func newSampler(s Sampling, prompt []int32, vocab int) *sampler {
	seed := rand.Uint64()
	if s.Seed != nil {
		seed = *s.Seed
	}
	p := &sampler{Sampling: s, vocab: vocab, cold: 1 / s.Temperature, rng: rand.New(rand.NewPCG(seed, 0)), count: map[int32]int{}}
	if s.RepetitionPenalty != 0 && s.RepetitionPenalty != 1 {
		p.prompt = make(map[int32]struct{})
		for _, t := range prompt {
			p.prompt[t] = struct{}{}
		}
	}
	return p
}

// accept tells the sampler of a token that was generated.
func (p *sampler) accept(id int32) {
	if p.adjusts() {
		p.count[id]++
	}
}

// sample chooses a token from the logits of all rows, of those whose bits are
// set in allowed where that is not nil.
func (p *sampler) sample(logits []float32, allowed []uint64) (int32, error) {
	logits = logits[:p.vocab]
	if p.adjusts() {
		logits = p.adjust(logits)
	}
	if allowed == nil {
		return p.choose(logits)
	}
	// The model has failed too where the rows that are left out show it.
	if _, err := argmax(logits); err != nil {
		return 0, err
	}
	ids, among := p.only(logits, allowed)
	i, err := p.choose(among)
	if err != nil {
		return 0, err
	}
	return ids[i], nil
}

// choose returns the place of the choice in logits.
func (p *sampler) choose(logits []float32) (int32, error) {
	best, err := argmax(logits)
	if err != nil || p.greedy() {
		return best, err
	}
	if p.TopK > 0 && p.TopK < len(logits) {
		return p.fromLikeliest(logits), nil
	}
	return p.fromAll(logits, logits[best]), nil
}

// only returns the tokens allowed, in their order, and the logits of these, in
// scratch memory.
func (p *sampler) only(logits []float32, allowed []uint64) (ids []int32, among []float32) {
	ids, among = p.ids[:0], p.among[:0]
	for i, w := range allowed {
		for ; w != 0; w &= w - 1 {
			id := 64*i + bits.TrailingZeros64(w)
			ids, among = append(ids, int32(id)), append(among, logits[id])
		}
	}
	p.ids, p.among = ids, among
	return ids, among
}

// argmax returns the token of the largest logit, of equals the lowest.
func argmax(logits []float32) (int32, error) {
	best, at := float32(math.Inf(-1)), -1
	for i, x := range logits {
		if x != x {
			return 0, ErrNotANumber
		}
		if x > best {
			best, at = x, i
		}
	}
	if at < 0 || math.IsInf(float64(best), 1) {
		return 0, ErrNotANumber
	}
	return int32(at), nil
}

// adjust returns the logits after bias and penalties, in scratch memory.
func (p *sampler) adjust(logits []float32) []float32 {
	p.adjusted = append(p.adjusted[:0], logits...)
	x := p.adjusted
	for id, b := range p.LogitBias {
		x[id] += float32(b)
	}
	if r := p.RepetitionPenalty; r != 0 && r != 1 {
		for id := range p.prompt {
			x[id] = repeated(x[id], r)
		}
		for id := range p.count {
			if _, done := p.prompt[id]; !done {
				x[id] = repeated(x[id], r)
			}
		}
	}
	for id, n := range p.count {
		x[id] -= float32(p.PresencePenalty + float64(n)*p.FrequencyPenalty)
	}
	return x
}

// repeated makes a logit less likely, whatever its sign.
func repeated(x float32, penalty float64) float32 {
	if x > 0 {
		return float32(float64(x) / penalty)
	}
	return float32(float64(x) * penalty)
}
