package cpu

import "math"

// RopeFrequencies returns theta^(-2i/dims) for the dims/2 pairs of a head.
func RopeFrequencies(dims int, theta float64) []float64 {
	f := make([]float64, dims/2)
	for i := range f {
		f[i] = math.Pow(theta, -2*float64(i)/float64(dims))
	}
	return f
}

// RopeAngles sets cos and sin, [dims/2] each, for one position.
func RopeAngles(cos, sin []float32, position int, frequencies []float64) {
	for i, f := range frequencies {
		s, c := math.Sincos(float64(position) * f)
		cos[i], sin[i] = float32(c), float32(s)
	}
}

// Rope turns the pairs (i, i + dims/2) of one head, i < dims/2 = len(cos), by
// the angles of its position; later dimensions stay.
func Rope(r Rounding, x, cos, sin []float32) {
	half := len(cos)
	for i, c := range cos {
		a, b, s := x[i], x[i+half], sin[i]
		x[i] = r.value(a*c - b*s)
		x[i+half] = r.value(b*c + a*s)
	}
}
