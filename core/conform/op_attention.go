package conform

import (
	"fmt"
	"math"
	"testing"
)

func testRope(t *testing.T, o Operations) {
	for _, s := range []struct {
		width, dims int
		theta       float64
	}{{4, 2, 10000}, {64, 16, 10_000_000}, {256, 64, 10_000_000}, {256, 64, 10000}} {
		for _, position := range []int{0, 1, 63, 4095, 262143} {
			x := newSource(s.width, position).normal(s.width, 1)
			want := make([]float64, s.width)
			for i, v := range x {
				want[i] = float64(v)
			}
			for i := range s.dims / 2 {
				angle := float64(position) * math.Pow(s.theta, -2*float64(i)/float64(s.dims))
				a, b := float64(x[i]), float64(x[i+s.dims/2])
				want[i] = a*math.Cos(angle) - b*math.Sin(angle)
				want[i+s.dims/2] = b*math.Cos(angle) + a*math.Sin(angle)
			}
			o.Rope(x, position, s.dims, s.theta)
			near{1e-6, 1}.check(t, o, fmt.Sprintf("%d of %d dimensions at %d", s.dims, s.width, position), x, want, 1)
		}
	}
}

func testAttend(t *testing.T, o Operations) {
	for _, s := range []struct {
		name   string
		n, dim int
		spread float64 // of queries: large ones make one key win
	}{
		{"one key", 1, 64, 1},
		{"one less than a block", 63, 96, 1},
		{"a block", 64, 256, 1},
		{"one more than a block", 65, 256, 1},
		{"flat weights over many blocks", 1000, 256, 0.01},
		{"one key wins", 1000, 64, 30},
		{"ragged", 517, 20, 2},
	} {
		t.Run(s.name, func(t *testing.T) {
			r := newSource(s.n, s.dim)
			q, keys, values := r.normal(s.dim, s.spread), r.normal(s.n*s.dim, 1), r.normal(s.n*s.dim, 1)
			scale := float32(1 / math.Sqrt(float64(s.dim)))
			want := attend64(q, keys, values, float64(scale))
			got := unset(s.dim)
			o.Attend(got, q, keys, values, scale)
			// A score's error is relative to its own size, and e^s multiplies it.
			near{4e-6 * max(1, s.spread), 1}.check(t, o, "o", got, want, 1)
		})
	}
}

func attend64(q, keys, values []float32, scale float64) []float64 {
	dim := len(q)
	scores, largest := make([]float64, len(keys)/dim), math.Inf(-1)
	for j := range scores {
		for i, x := range q {
			scores[j] += float64(x) * float64(keys[j*dim+i]) * scale
		}
		largest = max(largest, scores[j])
	}
	out, sum := make([]float64, dim), 0.0
	for j, s := range scores {
		p := math.Exp(s - largest)
		sum += p
		for i := range out {
			out[i] += p * float64(values[j*dim+i])
		}
	}
	for i := range out {
		out[i] /= sum
	}
	return out
}
