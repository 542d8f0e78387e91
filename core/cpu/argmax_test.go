package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
)

// Every implementation returns what the plain one does, wherever a largest, a
// tie or what isn't a number lies.
func TestArgmaxOfManyLogits(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	forEveryKernels(t, func(t *testing.T, k Kernels) {
		argmax, r := k.kernels().argmax, rand.New(rand.NewPCG(3, 4))
		for n := range 131 {
			logits := make([]float32, n)
			for i := range logits {
				logits[i] = -float32(r.IntN(40)) / 4 // with ties
			}
			check := func(what string) {
				if got, want := argmax(logits), Argmax(logits); got != want {
					t.Fatalf("%d logits, %s: %d, want %d", n, what, got, want)
				}
			}
			check("drawn")
			for i, v := range logits {
				for what, special := range map[string]float32{"one larger": 1, "a NaN": nan, "infinity": inf, "-infinity": -inf} {
					logits[i] = special
					check(what)
				}
				logits[i] = v
			}
			for i := range logits {
				logits[i] = -inf
			}
			check("all -infinity")
		}
	})
}
