package conform

import (
	"math"
	"slices"
	"testing"
)

const normEps = 1e-6

// normShapes are widths at and off the powers of two, and every number of rows.
var normShapes = func() []struct{ rows, width int } {
	shapes := []struct{ rows, width int }{{1, 1}, {3, 100}, {2, 128}, {5, 256}, {7, 2048}}
	for _, rows := range Ragged {
		shapes = append(shapes, struct{ rows, width int }{rows, 64})
	}
	return shapes
}()

// rms64 is RMSNorm of one row; w may be nil.
func rms64(x, w []float32, eps float64) []float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v) / math.Sqrt(sum/float64(len(x))+eps)
		if w != nil {
			out[i] *= float64(w[i])
		}
	}
	return out
}

func testRMSNorm(t *testing.T, o Operations) {
	for _, s := range normShapes {
		for _, spread := range []float64{1, 1e-4, 300, 0} {
			r := newSource(s.rows, s.width)
			x, w := r.normal(s.rows*s.width, spread), r.normal(s.width, 1)
			var want []float64
			for at := 0; at < len(x); at += s.width {
				want = append(want, rms64(x[at:at+s.width], w, normEps)...)
			}
			y := unset(len(x))
			o.RMSNorm(y, x, w, normEps)
			near{1e-6, 2}.check(t, o, shape(s.rows, s.width), y, want, 0)
			o.RMSNorm(x, x, w, normEps)
			near{1e-6, 2}.check(t, o, shape(s.rows, s.width)+" in place", x, want, 0)
		}
	}
}

func testGatedNorm(t *testing.T, o Operations) {
	for _, s := range normShapes {
		r := newSource(s.rows, s.width)
		n := s.rows * s.width
		x, z, w := r.normal(n, 0.05), r.normal(n, 3), r.normal(s.width, 1)
		var want []float64
		for at := 0; at < n; at += s.width {
			want = append(want, rms64(x[at:at+s.width], w, normEps)...)
		}
		for i, g := range z {
			want[i] *= float64(g) * sigmoid64(float64(g))
		}
		y := unset(n)
		o.GatedNorm(y, x, z, w, normEps)
		near{1e-6, 3}.check(t, o, shape(s.rows, s.width), y, want, 0)
	}
}

func testUnitNorm(t *testing.T, o Operations) {
	for _, s := range normShapes {
		for _, scale := range []float32{1, 0.08838835} {
			r := newSource(s.rows, s.width)
			x := r.normal(s.rows*s.width, 0.3)
			var want []float64
			for at := 0; at < len(x); at += s.width {
				for _, v := range rms64(x[at:at+s.width], nil, 1e-6/float64(s.width)) {
					want = append(want, v*float64(scale)/math.Sqrt(float64(s.width)))
				}
			}
			o.UnitNorm(x, s.width, scale)
			near{1e-6, 2}.check(t, o, shape(s.rows, s.width), x, want, 0)
		}
	}
}

func testSwiGLU(t *testing.T, o Operations) {
	for _, n := range []int{1, 64, 70, 512, 3 * 512} {
		r := newSource(n)
		gate, up := r.normal(n, 4), r.normal(n, 1)
		gate[0] = -90 // e^90 is a float32, e^-90 almost none
		want := make([]float64, n)
		for i, g := range gate {
			want[i] = float64(g) * sigmoid64(float64(g)) * float64(up[i])
		}
		o.SwiGLU(gate, up)
		near{1e-6, 2}.check(t, o, shape(n), gate, want, 0)
	}
}

func testOutputGate(t *testing.T, o Operations) {
	for _, n := range []int{1, 64, 100, 4096} {
		r := newSource(n)
		x, gate := r.normal(n, 1), r.normal(n, 4)
		want := make([]float64, n)
		for i, g := range gate {
			want[i] = float64(x[i]) * sigmoid64(float64(g))
		}
		got := slices.Clone(x)
		o.OutputGate(got, gate)
		near{1e-6, 2}.check(t, o, shape(n), got, want, 0)
	}
}
