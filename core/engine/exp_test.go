package engine

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestExpBelow(t *testing.T) {
	check := func(x float64) {
		got, want := expBelow(x), math.Exp(x)
		if math.Abs(got-want) > 7e-16*want {
			t.Fatalf("expBelow(%v) = %v, want %v", x, got, want)
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1_000_000 {
		check(-rng.Float64() * 700)
		check(-rng.ExpFloat64())
	}
	for i := range 10000 {
		check(-float64(i) * math.Ln2 / (2 * expSteps))
	}
	for _, x := range []float64{0, math.Copysign(0, -1), -1e-300, -700} {
		check(x)
	}
	for _, x := range []float64{-700.1, -1e9, math.Inf(-1)} {
		if got := expBelow(x); got != 0 {
			t.Errorf("expBelow(%v) = %v, want 0", x, got)
		}
	}
}

var sink64 float64

func BenchmarkExp(b *testing.B) {
	for name, f := range map[string]func(float64) float64{"math": math.Exp, "below": expBelow} {
		b.Run(name, func(b *testing.B) {
			x := 0.0
			for b.Loop() {
				sink64 += f(x)
				if x -= 0.01; x < -30 {
					x = 0
				}
			}
		})
	}
}
