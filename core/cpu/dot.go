package cpu

// dot returns Σ aᵢbᵢ, summed in four lanes, the lanes in order.
func dot(a, b []float32) float32 {
	var s0, s1, s2, s3 float32
	n := len(a) &^ 3
	for i := 0; i < n; i += 4 {
		p, q := (*[4]float32)(a[i:]), (*[4]float32)(b[i:])
		s0 += float32(p[0] * q[0])
		s1 += float32(p[1] * q[1])
		s2 += float32(p[2] * q[2])
		s3 += float32(p[3] * q[3])
	}
	for i := n; i < len(a); i++ {
		s0 += float32(a[i] * b[i])
	}
	return (s0 + s1) + (s2 + s3)
}

// dot2x2 adds the products of two rows a with two rows b, all as long as a0, to
// s: s = {a0·b0, a0·b1, a1·b0, a1·b1}. Each sum goes from the first element to
// the last, so that a pair of equal rows gives what each would give alone.
func dot2x2(s *[4]float32, a0, a1, b0, b1 []float32) {
	n := len(a0)
	a1, b0, b1 = a1[:n], b0[:n], b1[:n]
	s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
	for i := range n {
		p, q, u, v := a0[i], a1[i], b0[i], b1[i]
		s0 += float32(p * u)
		s1 += float32(p * v)
		s2 += float32(q * u)
		s3 += float32(q * v)
	}
	s[0], s[1], s[2], s[3] = s0, s1, s2, s3
}

// productNT sets c [m, n] to a [m, k] times the transpose of b [n, k]. An odd
// last row or column is paired with itself.
func productNT(c, a, b []float32, m, n, k int) {
	for i := 0; i < m; i += 2 {
		i1 := min(i+1, m-1)
		a0, a1 := a[i*k:][:k], a[i1*k:][:k]
		for j := 0; j < n; j += 2 {
			j1 := min(j+1, n-1)
			var s [4]float32
			dot2x2(&s, a0, a1, b[j*k:][:k], b[j1*k:][:k])
			c[i*n+j], c[i*n+j1] = s[0], s[1]
			c[i1*n+j], c[i1*n+j1] = s[2], s[3]
		}
	}
}

// addScaled adds Σ_j w[j] × x[j] to y, the rows x[j] being stride apart, j
// ascending for every element.
func addScaled(y, w, x []float32, stride int) {
	n, j := len(y), 0
	for ; j+4 <= len(w); j += 4 {
		w0, w1, w2, w3 := w[j], w[j+1], w[j+2], w[j+3]
		x0, x1 := x[j*stride:][:n], x[(j+1)*stride:][:n]
		x2, x3 := x[(j+2)*stride:][:n], x[(j+3)*stride:][:n]
		for i, v := range y {
			v += float32(w0 * x0[i])
			v += float32(w1 * x1[i])
			v += float32(w2 * x2[i])
			v += float32(w3 * x3[i])
			y[i] = v
		}
	}
	for ; j < len(w); j++ {
		wj, xj := w[j], x[j*stride:][:n]
		for i := range y {
			y[i] += float32(wj * xj[i])
		}
	}
}
