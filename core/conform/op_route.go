package conform

import (
	"math"
	"slices"
	"testing"
)

func testRoute(t *testing.T, o Operations) {
	inf := float32(math.Inf(1))
	for _, tt := range []struct {
		name   string
		logits []float32
		k      int
		want   []int32
	}{
		{"one expert", []float32{3}, 1, []int32{0}},
		{"falling order", []float32{1, 4, 2, 3}, 3, []int32{1, 3, 2}},
		{"all equal: the lowest", []float32{2, 2, 2, 2}, 2, []int32{0, 1}},
		{"a tie for the last place", []float32{0, 5, 1, 1, 1}, 2, []int32{1, 2}},
		{"a tie for the first place", []float32{0, 5, 1, 5}, 2, []int32{1, 3}},
		{"negative", []float32{-9, -2, -7}, 2, []int32{1, 2}},
		{"one expert impossible", []float32{-inf, 1, 0}, 2, []int32{1, 2}},
		{"as many as there are", []float32{1, 2}, 2, []int32{1, 0}},
		{"far apart", []float32{-1000, 1000}, 2, []int32{1, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) { checkRoute(t, o, tt.logits, tt.k, tt.want) })
	}
	t.Run("256 experts", func(t *testing.T) {
		for seed := range 50 {
			logits := newSource(seed).normal(256, 2) // bfloat16, so there are ties
			order := make([]int32, len(logits))
			for i := range order {
				order[i] = int32(i)
			}
			slices.SortStableFunc(order, func(a, b int32) int {
				switch {
				case logits[a] > logits[b]:
					return -1
				case logits[a] < logits[b]:
					return 1
				}
				return 0
			})
			checkRoute(t, o, logits, 8, order[:8])
		}
	})
}

// checkRoute compares with softmax over all experts, the k largest,
// renormalised.
func checkRoute(t *testing.T, o Operations, logits []float32, k int, want []int32) {
	t.Helper()
	experts, weights := make([]int32, k), unset(k)
	for i := range experts {
		experts[i] = -1
	}
	o.Route(experts, weights, logits)
	if !slices.Equal(experts, want) {
		t.Fatalf("experts %v, want %v", experts, want)
	}
	largest := float64(slices.Max(logits))
	p, sum := make([]float64, k), 0.0
	for i, e := range want {
		p[i] = math.Exp(float64(logits[e]) - largest)
		sum += p[i]
	}
	for i := range p {
		p[i] /= sum
	}
	o.Rounded = false // weights never are
	near{1e-6, 0}.check(t, o, "weights", weights, p, 0)
}

func testArgmax(t *testing.T, o Operations) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	long := make([]float32, 248320)
	long[200_000], long[200_001] = 1, 1
	for _, tt := range []struct {
		name   string
		logits []float32
		want   int32
	}{
		{"one", []float32{-3}, 0},
		{"last", []float32{1, 2, 3}, 2},
		{"equals: the lowest", []float32{1, 3, 2, 3}, 1},
		{"all negative", []float32{-5, -4, -6}, 1},
		{"minus infinity everywhere", []float32{-inf, -inf}, -1},
		{"minus infinity somewhere", []float32{-inf, -7, -inf}, 1},
		{"infinity", []float32{0, inf, 1}, -1},
		{"not a number first", []float32{nan, 1}, -1},
		{"not a number behind the largest", []float32{1, 9, nan}, -1},
		{"negative zero equals zero", []float32{float32(math.Copysign(0, -1)), 0}, 0},
		{"a whole vocabulary", long, 200_000},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := o.Argmax(tt.logits); got != tt.want {
				t.Errorf("Argmax = %d, want %d", got, tt.want)
			}
		})
	}
}
