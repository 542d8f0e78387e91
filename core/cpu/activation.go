package cpu

import "math"

// sigmoid returns 1 / (1 + e^-x).
func sigmoid(x float32) float32 { return float32(1 / (1 + math.Exp(-float64(x)))) }

// silu returns x × sigmoid(x).
func silu(x float32) float32 { return float32(float64(x) / (1 + math.Exp(-float64(x)))) }

// softplus returns log(1 + e^x) and overflows for no x.
func softplus(x float32) float32 {
	v := float64(x)
	return float32(math.Max(v, 0) + math.Log1p(math.Exp(-math.Abs(v))))
}

// exp returns e^x.
func exp(x float32) float32 { return float32(math.Exp(float64(x))) }

// Sigmoid replaces each x by 1 / (1 + e^-x).
func Sigmoid(r Rounding, x []float32) {
	for i, v := range x {
		x[i] = r.value(sigmoid(v))
	}
}

// SwiGLU sets gate to silu(gate) × up, rounded once.
func SwiGLU(r Rounding, gate, up []float32) {
	for i, g := range gate {
		gate[i] = r.value(silu(g) * up[i])
	}
}

// OutputGate multiplies x by sigmoid(gate). The sigmoid is rounded, then the
// product.
func OutputGate(r Rounding, x, gate []float32) {
	for i, g := range gate {
		x[i] = r.value(x[i] * r.value(sigmoid(g)))
	}
}

// Add adds y to the residual stream h.
func Add(r Rounding, h, y []float32) {
	for i, v := range y {
		h[i] = r.value(h[i] + v)
	}
}
