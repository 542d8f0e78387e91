package cpu

// Conv is the causal depthwise convolution, then silu: for channels lo to hi
//
//	y[t, c] = silu( Σ_j w[j, c] × x[t + j, c] ),  j = 0 .. taps-1
//
//	y  [rows, channels]
//	x  [taps-1 + rows, channels]; the first taps-1 rows are the conv state
//	w  [taps, channels]; the last tap meets the row itself
//
// The sum is rounded, then its silu.
func Conv(r Rounding, y, x, w []float32, rows, channels, lo, hi int) {
	taps := len(w) / channels
	for t := range rows {
		out := y[t*channels:][:channels]
		for c := lo; c < hi; c++ {
			var sum float32
			for j := range taps {
				sum += w[j*channels+c] * x[(t+j)*channels+c]
			}
			out[c] = r.value(silu(r.value(sum)))
		}
	}
}
