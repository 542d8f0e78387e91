package conform

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"calla/core/tensor"
)

// Ragged is how many rows an operation of many is tried with: all up to one more
// than eight, and around the sizes of tiles and of sub-chunks.
var Ragged = []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 63, 64, 65}

// Operations are a backend's kernels as functions on plain slices, which bring
// operands to the device and results back. A nil one is not tested: the backend
// has it only as part of another. Slices are row-major; the CPU's functions of
// the same names state the formulas.
type Operations struct {
	// Rounded says that outputs, but for gates, weights of experts and states,
	// are rounded to bfloat16. Activations are given so that they are too.
	Rounded bool

	RMSNorm    func(y, x, w []float32, eps float32)
	GatedNorm  func(y, x, z, w []float32, eps float32)
	UnitNorm   func(x []float32, width int, scale float32)
	SwiGLU     func(gate, up []float32)
	OutputGate func(x, gate []float32)

	QMatVec func(y []float32, w Matrix, x []float32)
	QMatMul func(y []float32, w Matrix, x []float32, rows int)
	Embed   func(h []float32, table Matrix, tokens []int32)

	Conv       func(y, x, w []float32, rows, channels int)
	Gates      func(b, a, rate, dt []float32)
	DeltaStep  func(o, s, q, k, v []float32, decay, beta float32)
	DeltaChunk func(o, s, q, k, v, decay, beta []float32)

	Rope   func(x []float32, position, dims int, theta float64)
	Attend func(o, q, keys, values []float32, scale float32)

	Route  func(experts []int32, weights, logits []float32)
	Argmax func(logits []float32) int32
}

// Matrix is an affine-quantised [Out, In] matrix in a checkpoint's layout.
type Matrix struct {
	Codes, Scales, Biases []byte
	Out, In               int
	Bits                  int
}

// Ops runs the table of every operation.
func Ops(t *testing.T, o Operations) {
	for _, op := range []struct {
		name string
		has  bool
		run  func(*testing.T, Operations)
	}{
		{"RMSNorm", o.RMSNorm != nil, testRMSNorm},
		{"GatedNorm", o.GatedNorm != nil, testGatedNorm},
		{"UnitNorm", o.UnitNorm != nil, testUnitNorm},
		{"SwiGLU", o.SwiGLU != nil, testSwiGLU},
		{"OutputGate", o.OutputGate != nil, testOutputGate},
		{"QMatVec", o.QMatVec != nil, testQMatVec},
		{"QMatMul", o.QMatMul != nil, testQMatMul},
		{"Embed", o.Embed != nil, testEmbed},
		{"Conv", o.Conv != nil, testConv},
		{"Gates", o.Gates != nil, testGates},
		{"DeltaStep", o.DeltaStep != nil, testDeltaStep},
		{"DeltaChunk", o.DeltaChunk != nil, testDeltaChunk},
		{"Rope", o.Rope != nil, testRope},
		{"Attend", o.Attend != nil, testAttend},
		{"Route", o.Route != nil, testRoute},
		{"Argmax", o.Argmax != nil, testArgmax},
	} {
		t.Run(op.name, func(t *testing.T) {
			if !op.has {
				t.Skip("the backend has no such kernel")
			}
			op.run(t, o)
		})
	}
}

// near says how far an output may be from the float64 formula: float32 sums
// cost eps of the magnitude of what was added up, and each bfloat16 rounding on
// the way half a unit in the last of eight bits.
type near struct {
	eps       float64
	roundings int // in rounded operations only
}

// check compares outputs with the formula. Magnitude is what eps is relative
// to, for all outputs, at least their own.
func (n near) check(t testing.TB, o Operations, what string, got []float32, want []float64, magnitude float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i, w := range want {
		limit := n.eps*max(magnitude, math.Abs(w)) + 1e-37
		if o.Rounded {
			limit += float64(n.roundings) * math.Abs(w) / 256
		}
		// Negated, so that not-a-number fails.
		if d := math.Abs(float64(got[i]) - w); !(d <= limit) {
			t.Errorf("%s: value %d is %v, want %v within %.3g", what, i, got[i], w, limit)
			return
		}
	}
}

// source makes random operands that are the same in every run.
type source struct{ *rand.Rand }

func newSource(seed ...int) source {
	s := uint64(17)
	for _, v := range seed {
		s = s*31 + uint64(v)
	}
	return source{rand.New(rand.NewPCG(s, 1))}
}

// normal returns n values of the spread, rounded to bfloat16.
func (s source) normal(n int, spread float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = tensor.RoundBF16(float32(spread * s.NormFloat64()))
	}
	return v
}

// uniform returns n values from lo to hi, not rounded.
func (s source) uniform(n int, lo, hi float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(lo + (hi-lo)*s.Float64())
	}
	return v
}

// unit returns rows of length 1, not rounded.
func (s source) unit(rows, width int) []float32 {
	v := s.normal(rows*width, 1)
	for at := 0; at < len(v); at += width {
		var sum float64
		for _, x := range v[at : at+width] {
			sum += float64(x) * float64(x)
		}
		for i := range width {
			v[at+i] = float32(float64(v[at+i]) / math.Sqrt(sum))
		}
	}
	return v
}

// unset returns n outputs that no kernel may leave as they are.
func unset(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.NaN())
	}
	return v
}

func sigmoid64(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func shape(extents ...int) string { return fmt.Sprint(extents) }
