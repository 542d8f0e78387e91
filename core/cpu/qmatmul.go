package cpu

// tileIn is how many columns of two weight rows are dequantised at once: small
// enough to stay in the nearest cache while all activations pass by.
const tileIn = 256

// QMatMul sets y to x Wᵀ, a row of y for each row of x. Prefill only: it widens
// a weight once for all rows.
//
//	y [rows, Out]  rounded as r says
//	x [rows, In]
//
// Each value is Σ (scale × code + bias) × x in float32, columns in order. A
// row's values do not depend on the other rows.
func QMatMul(r Rounding, y []float32, w Matrix, x []float32, rows int) {
	qmatmul(r, y, w, 0, w.Out, x, rows)
}

// qmatmul makes columns lo to hi of y. An odd last weight row or activation row
// is paired with itself.
func qmatmul(r Rounding, y []float32, w Matrix, lo, hi int, x []float32, rows int) {
	var tile [2][tileIn]float32
	for n := lo; n < hi; n += 2 {
		n1 := min(n+1, hi-1)
		for t := range rows {
			y[t*w.Out+n], y[t*w.Out+n1] = 0, 0
		}
		for k := 0; k < w.In; k += tileIn {
			width := min(tileIn, w.In-k)
			w.dequantise(tile[0][:width], n, k)
			w.dequantise(tile[1][:width], n1, k)
			for t := 0; t < rows; t += 2 {
				t1 := min(t+1, rows-1)
				y0, y1 := y[t*w.Out:][:w.Out], y[t1*w.Out:][:w.Out]
				s := [4]float32{y0[n], y0[n1], y1[n], y1[n1]}
				dot2x2(&s, x[t*w.In+k:][:width], x[t1*w.In+k:][:width], tile[0][:width], tile[1][:width])
				y0[n], y0[n1], y1[n], y1[n1] = s[0], s[1], s[2], s[3]
			}
		}
	}
	for t := range rows {
		r.values(y[t*w.Out+lo : t*w.Out+hi])
	}
}
