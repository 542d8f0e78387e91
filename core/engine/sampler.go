package engine

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
		{"repetition_penalty", s.RepetitionPenalty, 0, 2, "between 0 and 2"},
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
			return &SamplingError{"logit_bias", fmt.Sprintf("names token %d, the vocabulary has %d", id, vocab)}
		}
		if !(b >= -100 && b <= 100) {
			return &SamplingError{"logit_bias", fmt.Sprintf("%v for token %d, want a number between -100 and 100", b, id)}
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
	vocab int // rows that are tokens; padding behind them is never chosen
	rng   *rand.Rand

	prompt map[int32]struct{} // tokens of the prompt, for the repetition penalty
	count  map[int32]int      // tokens generated

	work []candidate // scratch
}

// candidate is a token that may be chosen.
type candidate struct {
	id    int32
	logit float64
}

func newSampler(s Sampling, prompt []int32, vocab int) *sampler {
	seed := rand.Uint64()
	if s.Seed != nil {
		seed = *s.Seed
	}
	p := &sampler{Sampling: s, vocab: vocab, rng: rand.New(rand.NewPCG(seed, 0)), count: map[int32]int{}}
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

// sample chooses a token from the logits of all rows.
func (p *sampler) sample(logits []float32) (int32, error) {
	if p.plain() {
		return argmax(logits[:p.vocab])
	}
	c := p.candidates(logits)
	best := slices.MaxFunc(c, byLogit)
	for _, x := range c {
		if x.logit != x.logit {
			return 0, ErrNotANumber
		}
	}
	if math.IsInf(best.logit, 0) {
		return 0, ErrNotANumber
	}
	if p.greedy() {
		return best.id, nil
	}
	return p.draw(p.narrow(c, best.logit/p.Temperature)), nil
}

// byLogit orders candidates by rising logit, of equals the higher id first, so
// that the largest is the lowest of equals. NaN is below all numbers.
func byLogit(a, b candidate) int {
	if c := cmp.Compare(a.logit, b.logit); c != 0 {
		return c
	}
	return cmp.Compare(b.id, a.id)
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

// candidates returns all tokens with their logits after bias and penalties.
func (p *sampler) candidates(logits []float32) []candidate {
	if cap(p.work) < p.vocab {
		p.work = make([]candidate, p.vocab)
	}
	c := p.work[:p.vocab]
	for i, x := range logits[:p.vocab] {
		c[i] = candidate{int32(i), float64(x)}
	}
	for id, b := range p.LogitBias {
		c[id].logit += b
	}
	if r := p.RepetitionPenalty; r != 0 && r != 1 {
		for id := range p.prompt {
			if int(id) < len(c) {
				c[id].logit = repeated(c[id].logit, r)
			}
		}
		for id := range p.count {
			if _, done := p.prompt[id]; !done {
				c[id].logit = repeated(c[id].logit, r)
			}
		}
	}
	for id, n := range p.count {
		c[id].logit -= p.PresencePenalty + float64(n)*p.FrequencyPenalty
	}
	return c
}

// repeated makes a logit less likely, whatever its sign.
func repeated(x, penalty float64) float64 {
	if x > 0 {
		return x / penalty
	}
	return x * penalty
}

// narrow applies temperature, top-k, top-p and min-p, in this order, and
// returns what may still be drawn; the likeliest, whose logit after the
// temperature is top, always is.
func (p *sampler) narrow(c []candidate, top float64) []candidate {
	for i := range c {
		c[i].logit /= p.Temperature
	}
	if p.TopK > 0 {
		c = largest(c, min(p.TopK, len(c)))
	}
	if p.TopP > 0 && p.TopP < 1 {
		c = nucleus(c, p.TopP, top)
	}
	if p.MinP > 0 {
		floor := top + math.Log(p.MinP)
		c = slices.DeleteFunc(c, func(x candidate) bool { return x.logit < floor })
	}
	return c
}

// mass returns Σ exp(logit − top).
func mass(c []candidate, top float64) float64 {
	var sum float64
	for _, x := range c {
		sum += math.Exp(x.logit - top)
	}
	return sum
}

// nucleus returns the fewest of the likeliest candidates that together have at
// least the share p of the probability, sorted by falling logit.
func nucleus(c []candidate, p, top float64) []candidate {
	want := p * mass(c, top)
	// Sorting the whole vocabulary costs more than the rest of the sampler:
	// widen a band under the top until it holds enough.
	band := c
	for depth := 4.0; ; depth *= 2 {
		n := 0
		for i, x := range c {
			if x.logit >= top-depth {
				c[n], c[i] = c[i], c[n]
				n++
			}
		}
		band = c[:n]
		if n == len(c) || mass(band, top) >= want {
			break
		}
	}
	band = largest(band, len(band))
	var sum float64
	for i, x := range band {
		if sum += math.Exp(x.logit - top); sum >= want {
			return band[:i+1]
		}
	}
	return band // rounding left a crumb
}

// draw picks one of c by its probability.
func (p *sampler) draw(c []candidate) int32 {
	top := slices.MaxFunc(c, byLogit).logit
	r := p.rng.Float64() * mass(c, top)
	for _, x := range c {
		if r -= math.Exp(x.logit - top); r < 0 {
			return x.id
		}
	}
	return c[len(c)-1].id // rounding left a crumb
}

// largest moves the k largest candidates to the front, sorted by falling
// logit, and returns them.
func largest(c []candidate, k int) []candidate {
	falling := func(a, b candidate) int { return byLogit(b, a) }
	if k < len(c)/8 {
		// A heap of k whose root is the smallest kept: most rows lose against
		// it with one comparison.
		h := c[:k:k]
		for i := k/2 - 1; i >= 0; i-- {
			siftDown(h, i)
		}
		for _, x := range c[k:] {
			if k > 0 && byLogit(x, h[0]) > 0 {
				h[0] = x
				siftDown(h, 0)
			}
		}
		c = h
		slices.SortFunc(c, falling)
		return c
	}
	slices.SortFunc(c, falling)
	return c[:k]
}

func siftDown(h []candidate, i int) {
	for {
		l := 2*i + 1
		if l >= len(h) {
			return
		}
		if r := l + 1; r < len(h) && byLogit(h[r], h[l]) < 0 {
			l = r
		}
		if byLogit(h[i], h[l]) <= 0 {
			return
		}
		h[i], h[l] = h[l], h[i]
		i = l
	}
}
