package cpu

import "calla/core/backend"

// DeltaChunk is the gated delta rule for the n rows of one sub-chunk and one
// value head, all at once: the same function as n times DeltaStep, in the WY
// form. Prefill only.
//
//	o, v         [n, value dim]; o is rounded
//	s            [value dim, key dim], the recurrent state, changed in place
//	q, k         [n, key dim]
//	decay, beta  [n]; decay holds logarithms, as Gates makes them
//
// With G_i the sum of decay up to row i and M_ij = beta_i (k_i·k_j)
// exp(G_i - G_j) for j < i, the rows U, W of
//
//	(I + M) U = beta v,  (I + M) W = beta exp(G) k
//
// don't depend on the state; D = U - W Sᵀ are the d of all rows, and
//
//	o_i = exp(G_i) S q_i + Σ_{j≤i} exp(G_i - G_j) (q_i·k_j) D_j
//	S   = exp(G_n) S + Σ_j exp(G_n - G_j) D_j k_jᵀ
//
// Row i depends on rows up to i only, to the bit.
func DeltaChunk(r Rounding, o, s, q, k, v, decay, beta []float32) {
	n := len(decay)
	deltaChunk(r, o, s, q, k, v, decay, beta, newChunkScratch(new(carver), len(k)/n, len(v)/n))
}

// chunkScratch is what one DeltaChunk needs besides its operands.
type chunkScratch struct {
	q, k, v, o []float32 // the operands of one head, side by side
	beta       []float32
	decay      []float32
	sum        []float32 // G
	column     []float32
	m, a       []float32 // [n, n]: -M, and the decayed q·k
	u, w       []float32 // [n, value dim], [n, key dim]
	t          []float32 // [n, value dim]
	kT, sT     []float32 // fast kernels: [key dim, n], [key dim, value dim]
}

func newChunkScratch(c *carver, keyDim, valueDim int) *chunkScratch {
	const n = backend.SubChunk
	return &chunkScratch{
		q: c.floats(n * keyDim), k: c.floats(n * keyDim),
		v: c.floats(n * valueDim), o: c.floats(n * valueDim),
		beta: c.floats(n), decay: c.floats(n),
		sum: c.floats(n), column: c.floats(n),
		m: c.floats(n * n), a: c.floats(n * n),
		u: c.floats(n * valueDim), w: c.floats(n * keyDim),
		t:  c.floats(n * valueDim),
		kT: c.floats(keyDim * n), sT: c.floats(keyDim * valueDim),
	}
}

// plainDeltaChunk is DeltaChunk with operands and output in the scratch.
func plainDeltaChunk(r Rounding, c *chunkScratch, s []float32, n, keyDim, valueDim int) {
	deltaChunk(r, c.o[:n*valueDim], s, c.q[:n*keyDim], c.k[:n*keyDim], c.v[:n*valueDim], c.decay[:n], c.beta[:n], c)
}

func deltaChunk(r Rounding, o, s, q, k, v, decay, beta []float32, c *chunkScratch) {
	n := len(decay)
	keyDim, valueDim := len(k)/n, len(v)/n
	var sum float32
	for i, l := range decay {
		sum += l
		c.sum[i] = sum
	}
	c.pairs(q, k, beta, n, keyDim)
	c.solve(k, v, beta, n, keyDim, valueDim)

	// U becomes D.
	productNT(c.t, c.w, s, n, valueDim, keyDim)
	for i, x := range c.t[:n*valueDim] {
		c.u[i] -= x
	}
	productNT(c.t, q, s, n, valueDim, keyDim)
	for i := range n {
		row, fade := o[i*valueDim:][:valueDim], exp(c.sum[i])
		for j, x := range c.t[i*valueDim:][:valueDim] {
			row[j] = fade * x
		}
		addScaled(row, c.a[i*n:][:i+1], c.u, valueDim)
		r.values(row)
	}
	c.update(s, k, n, keyDim, valueDim)
}

// pairs makes -M and the decayed products of queries with keys. Exponents of
// pairs above the diagonal would be positive, so they are never taken.
func (c *chunkScratch) pairs(q, k, beta []float32, n, keyDim int) {
	productNT(c.m, k, k, n, n, keyDim)
	productNT(c.a, q, k, n, n, keyDim)
	for i := range n {
		for j := range i + 1 {
			fade := exp(c.sum[i] - c.sum[j])
			c.m[i*n+j] *= -beta[i] * fade
			c.a[i*n+j] *= fade
		}
	}
}

// solve makes U and W by forward substitution.
func (c *chunkScratch) solve(k, v, beta []float32, n, keyDim, valueDim int) {
	for i := range n {
		m := c.m[i*n:][:i]
		u, w := c.u[i*valueDim:][:valueDim], c.w[i*keyDim:][:keyDim]
		for j, x := range v[i*valueDim:][:valueDim] {
			u[j] = beta[i] * x
		}
		fade := beta[i] * exp(c.sum[i])
		for j, x := range k[i*keyDim:][:keyDim] {
			w[j] = fade * x
		}
		addScaled(u, m, c.u, valueDim)
		addScaled(w, m, c.w, keyDim)
	}
}

// update moves the state to the end of the sub-chunk; U holds D.
func (c *chunkScratch) update(s, k []float32, n, keyDim, valueDim int) {
	last := c.sum[n-1]
	fade := exp(last)
	for j := range n {
		c.sum[j] = exp(last - c.sum[j])
	}
	for i := range valueDim {
		row := s[i*keyDim:][:keyDim]
		for j := range row {
			row[j] *= fade
		}
		for j := range n {
			c.column[j] = c.sum[j] * c.u[j*valueDim+i]
		}
		addScaled(row, c.column[:n], k, keyDim)
	}
}
