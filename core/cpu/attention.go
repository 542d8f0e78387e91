package cpu

import "math"

// keyBlock is how many keys attention takes at once. Blocks lie at absolute
// positions: block b holds positions 64 b to 64 b + 63.
const keyBlock = 64

// Attend is softmax(q kᵀ × scale) v for one row and one query head, block after
// block of keys with a running maximum.
//
//	o, q          [dim]; o is rounded
//	keys, values  [n, dim]; the row's own position is the last
func Attend(r Rounding, o, q, keys, values []float32, scale float32) {
	dim := len(q)
	part, scores := make(partial, 2+dim), make([]float32, keyBlock)
	part.reset()
	for len(keys) > 0 {
		n := min(keyBlock, len(keys)/dim)
		part.fold(q, keys[:n*dim], values[:n*dim], scores[:n], scale)
		keys, values = keys[n*dim:], values[n*dim:]
	}
	part.finish(r, o)
}

// headRows are the queries of some heads of one row, stride values apart.
type headRows struct {
	q                  []float32
	count, stride, dim int
}

// foldPlain takes the first n keys and values of a block in, for heads whose
// partials lie one behind the other.
func foldPlain(w *workerScratch, n int, heads headRows, parts []float32, scale float32) {
	dim := heads.dim
	for h := range heads.count {
		p, q := partial(parts[h*(2+dim):][:2+dim]), heads.q[h*heads.stride:][:dim]
		p.fold(q, w.keys[:n*dim], w.values[:n*dim], w.scores[:n], scale)
	}
}

// partial is a softmax under way: the largest score, the sum of the weights
// relative to it, and the weighted sum of the values.
type partial []float32

func (p partial) reset() {
	clear(p)
	p[0] = float32(math.Inf(-1))
}

// fold takes a block of keys in.
func (p partial) fold(q, keys, values, scores []float32, scale float32) {
	scoreKeys(scores, q, keys)
	largest := p[0]
	for j := range scores {
		scores[j] *= scale
		largest = max(largest, scores[j])
	}
	p.rescale(largest)
	sum := p[1]
	for j, s := range scores {
		scores[j] = exp(s - largest)
		sum += scores[j]
	}
	p[1] = sum
	addScaled(p[2:], scores, values, len(q))
}

// merge takes in what another partial has seen.
func (p partial) merge(other partial) {
	largest := max(p[0], other[0])
	p.rescale(largest)
	weight := exp(other[0] - largest)
	for i, v := range other[1:] {
		p[1+i] += weight * v
	}
}

// rescale makes the weights relative to a new largest score.
func (p partial) rescale(largest float32) {
	if p[0] == largest {
		return
	}
	factor := exp(p[0] - largest)
	p[0] = largest
	for i := range p[1:] {
		p[1+i] *= factor
	}
}

// finish sets o to the weighted mean of the values.
func (p partial) finish(r Rounding, o []float32) {
	for i, v := range p[2:] {
		o[i] = r.value(v / p[1])
	}
}

// scoreKeys sets scores to the products of q with each key, four keys at a time;
// missing ones of the last four repeat the last.
func scoreKeys(scores, q, keys []float32) {
	dim, last := len(q), len(scores)-1
	for j := 0; j <= last; j += 4 {
		j1, j2, j3 := min(j+1, last), min(j+2, last), min(j+3, last)
		k0, k1 := keys[j*dim:][:dim], keys[j1*dim:][:dim]
		k2, k3 := keys[j2*dim:][:dim], keys[j3*dim:][:dim]
		var s0, s1, s2, s3 float32
		for i, x := range q {
			s0 += float32(x * k0[i])
			s1 += float32(x * k1[i])
			s2 += float32(x * k2[i])
			s3 += float32(x * k3[i])
		}
		scores[j], scores[j1], scores[j2], scores[j3] = s0, s1, s2, s3
	}
}
