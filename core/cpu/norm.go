package cpu

import "math"

// RMSNorm sets each row of y to x / sqrt(mean(x²) + eps) × w. The normalised
// value is rounded, then its product with w.
//
//	y, x  [rows, len(w)]; may be the same
func RMSNorm(r Rounding, y, x, w []float32, eps float32) {
	width := len(w)
	for len(x) > 0 {
		scale := inverseRMS(x[:width], eps)
		for i, v := range x[:width] {
			y[i] = r.value(r.value(v*scale) * w[i])
		}
		x, y = x[width:], y[width:]
	}
}

// GatedNorm is RMSNorm, then times silu(z): the gate comes after the norm, and
// its product is rounded once.
//
//	y, x, z  [rows, len(w)]; y and x may be the same
func GatedNorm(r Rounding, y, x, z, w []float32, eps float32) {
	RMSNorm(r, y, x, w, eps)
	for i, v := range y {
		y[i] = r.value(v * silu(z[i]))
	}
}

// unitEps keeps UnitNorm from dividing by zero: it is added to the sum of
// squares.
const unitEps = 1e-6

// UnitNorm scales each row of x to length 1, then by scale, in place. Rows are
// width long.
func UnitNorm(r Rounding, x []float32, width int, scale float32) {
	root := float32(math.Sqrt(float64(width)))
	for ; len(x) > 0; x = x[width:] {
		inverse := inverseRMS(x[:width], unitEps/float32(width))
		for i, v := range x[:width] {
			x[i] = r.value(r.value(v*inverse) * (scale / root))
		}
	}
}

// inverseRMS returns 1 / sqrt(mean(x²) + eps).
func inverseRMS(x []float32, eps float32) float32 {
	mean := dot(x, x) / float32(len(x))
	return float32(1 / math.Sqrt(float64(mean+eps)))
}
