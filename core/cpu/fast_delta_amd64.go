package cpu

import "calla/core/backend"

func fastDeltaStep(r Rounding, o, s, q, k, v []float32, decay, beta float32) {
	if len(k)%8 != 0 || len(v)%4 != 0 {
		DeltaStep(r, o, s, q, k, v, decay, beta)
		return
	}
	kq := dotAVX2(&k[0], &q[0], len(k))
	deltaStepAVX2(&o[0], &s[0], &q[0], &k[0], &v[0], len(k), len(v), decay, beta, kq)
	fastRound(r, o)
}

// fastDeltaChunk is deltaChunk with the state and the keys transposed, which
// makes every product one of rows: [key dim, value dim] and [key dim, 64]. W is
// kept with its sign changed.
func fastDeltaChunk(r Rounding, c *chunkScratch, s []float32, n, keyDim, valueDim int) {
	if keyDim%8 != 0 || valueDim%8 != 0 {
		plainDeltaChunk(r, c, s, n, keyDim, valueDim)
		return
	}
	var sum float32
	for i, l := range c.decay[:n] {
		sum += l
		c.sum[i] = sum
	}
	const stride = backend.SubChunk
	transpose(c.kT, c.k, (n+7)&^7, keyDim, stride, keyDim)
	transpose(c.sT, s, valueDim, keyDim, valueDim, keyDim)
	c.pairsFast(n, keyDim)
	c.solveFast(n, keyDim, valueDim)

	// U becomes D.
	matMul(c.u, c.w, c.sT, n, valueDim, keyDim, valueDim, keyDim, valueDim, true)
	matMul(c.o, c.q, c.sT, n, valueDim, keyDim, valueDim, keyDim, valueDim, false)
	for i := range n {
		row := c.o[i*valueDim:][:valueDim]
		scaleAVX2(&row[0], &row[0], valueDim, exp(c.sum[i]))
		fastAddScaled(row, c.a[i*stride:][:i+1], c.u, valueDim)
		fastRound(r, row)
	}

	last := c.sum[n-1]
	scaleAVX2(&c.sT[0], &c.sT[0], keyDim*valueDim, exp(last))
	for j := range n {
		row := c.u[j*valueDim:]
		scaleAVX2(&row[0], &row[0], valueDim, exp(last-c.sum[j]))
	}
	matMul(c.sT, c.kT, c.u, keyDim, valueDim, n, valueDim, stride, valueDim, true)
	transpose(s, c.sT, keyDim, valueDim, keyDim, valueDim)
}

// pairsFast makes -M and the decayed products of queries with keys, [n, 64]
// both. What lies above the diagonal is left as it is.
func (c *chunkScratch) pairsFast(n, keyDim int) {
	const stride = backend.SubChunk
	matMul(c.m, c.k, c.kT, n, stride, keyDim, stride, keyDim, stride, false)
	matMul(c.a, c.q, c.kT, n, stride, keyDim, stride, keyDim, stride, false)
	for i := range n {
		fade := c.column[:i+1]
		for j, g := range c.sum[:i+1] {
			fade[j] = c.sum[i] - g
		}
		expSumAVX2(&fade[0], len(fade), 0)
		m, a, minus := c.m[i*stride:][:i+1], c.a[i*stride:][:i+1], -c.beta[i]
		for j, f := range fade {
			m[j] *= minus * f
			a[j] *= f
		}
	}
}

// solveFast makes U and -W by forward substitution.
func (c *chunkScratch) solveFast(n, keyDim, valueDim int) {
	for i := range n {
		m := c.m[i*backend.SubChunk:][:i]
		u, w := c.u[i*valueDim:][:valueDim], c.w[i*keyDim:][:keyDim]
		scaleAVX2(&u[0], &c.v[i*valueDim], valueDim, c.beta[i])
		scaleAVX2(&w[0], &c.k[i*keyDim], keyDim, -c.beta[i]*exp(c.sum[i]))
		fastAddScaled(u, m, c.u, valueDim)
		fastAddScaled(w, m, c.w, keyDim)
	}
}
