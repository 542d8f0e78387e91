package engine

// Top-k, top-p and min-p each keep a head of the tokens in the order of their
// likelihood, the lower token first among equals. A weight is a token's
// probability relative to the likeliest one's.

// fromLikeliest draws from the TopK likeliest tokens.
func (p *sampler) fromLikeliest(logits []float32) int32 {
	c := largest(logits, p.TopK, p.work)
	p.work = c
	top, sum := c[0].logit, 0.0
	for i := range c {
		c[i].weight = p.weight(c[i].logit, top)
		sum += c[i].weight
	}
	if p.cutsByMass() {
		want := p.TopP * sum
		sum = 0
		for i := range c {
			if sum += c[i].weight; sum >= want {
				c = c[:i+1]
				break
			}
		}
	}
	if p.MinP > 0 {
		n, kept := 0, 0.0
		for n < len(c) && c[n].weight >= p.MinP {
			kept += c[n].weight
			n++
		}
		c, sum = c[:n], kept
	}
	r := p.rng.Float64() * sum
	for _, x := range c {
		if r -= x.weight; r < 0 {
			return x.id
		}
	}
	return c[len(c)-1].id // rounding left a crumb
}

// fromAll draws from all tokens; top is the largest logit. Sorting a whole
// vocabulary would cost more than the rest of the sampler, so it only finds
// where the head ends.
func (p *sampler) fromAll(logits []float32, top float32) int32 {
	if cap(p.weights) < len(logits) {
		p.weights = make([]float64, len(logits))
	}
	weights := p.weights[:len(logits)]
	sum := 0.0
	if p.cutsByMass() {
		sum = p.keepMass(weights, logits, top)
	} else {
		for i, x := range logits {
			w := p.weight(x, top)
			weights[i] = w
			sum += w
		}
	}
	if p.MinP > 0 {
		sum = 0
		for i, w := range weights {
			if w < p.MinP {
				weights[i] = 0
				continue
			}
			sum += w
		}
	}
	r := p.rng.Float64() * sum
	last := 0
	for i, w := range weights {
		if w == 0 {
			continue
		}
		if r -= w; r < 0 {
			return int32(i)
		}
		last = i
	}
	return int32(last) // rounding left a crumb
}

func (p *sampler) weight(logit, top float32) float64 {
	return expBelow((float64(logit) - float64(top)) * p.cold)
}

func (p *sampler) cutsByMass() bool { return p.TopP > 0 && p.TopP < 1 }

// A band holds the tokens whose weights lie within a factor of e^(1/8) of one
// another; the last one holds all that are below e^-40.
const (
	bandsPerNat = 8
	bands       = 40*bandsPerNat + 1
)

// keepMass fills in the weights of the fewest of the likeliest tokens that
// together have at least the share TopP of all weight, zero for the others, and
// returns their sum. All tokens are sorted into bands; within the one in which
// the share is reached the end is found by partitioning.
func (p *sampler) keepMass(weights []float64, logits []float32, top float32) float64 {
	var mass [bands]float64
	band := func(x float32) int {
		return int(min((float64(top)-float64(x))*p.cold*bandsPerNat, bands-1))
	}
	all := 0.0
	for i, x := range logits {
		w := p.weight(x, top)
		weights[i] = w
		mass[band(x)] += w
		all += w
	}
	want, last := p.TopP*all, 0
	for last < bands-1 && mass[last] < want {
		want -= mass[last]
		last++
	}
	c := p.work[:0]
	for i, x := range logits {
		if b := band(x); b == last {
			c = append(c, candidate{int32(i), x, weights[i]})
		} else if b > last {
			weights[i] = 0
		}
	}
	p.work = c
	for _, x := range c[len(head(c, want)):] {
		weights[x.id] = 0
	}
	kept := 0.0
	for _, w := range weights {
		kept += w
	}
	return kept
}
