package engine

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// probabilities returns the softmax of logits by sums of 200 bits.
func probabilities(logits []float32) []float64 {
	top := float64(slices.Max(logits))
	sum := new(big.Float).SetPrec(200)
	for _, x := range logits {
		sum.Add(sum, big.NewFloat(math.Exp(float64(x)-top)))
	}
	out := make([]float64, len(logits))
	for i, x := range logits {
		out[i], _ = new(big.Float).Quo(big.NewFloat(math.Exp(float64(x)-top)), sum).Float64()
	}
	return out
}

func TestLogProbsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 32))
	for range 100 {
		logits := make([]float32, 30+rng.IntN(5000))
		for i := range logits {
			logits[i] = float32(rng.NormFloat64()*4) + 100
		}
		logits[7] = logits[20] // equals: the lower token first
		want := probabilities(logits)
		order := make([]int32, len(logits))
		for i := range order {
			order[i] = int32(i)
		}
		slices.SortStableFunc(order, func(a, b int32) int {
			if want[a] > want[b] {
				return -1
			} else if want[a] < want[b] {
				return 1
			}
			return 0
		})
		n, id := rng.IntN(MaxTopLogProbs+1), int32(rng.IntN(len(logits)))
		got := logProb(logits, id, n)
		check := func(l LogProb, id int32) {
			if l.Token != id || math.Abs(l.LogProb-math.Log(want[id])) > 1e-12 {
				t.Fatalf("token %d has the log-probability %v, want token %d and %v", l.Token, l.LogProb, id, math.Log(want[id]))
			}
		}
		check(*got, id)
		if len(got.Top) != n {
			t.Fatalf("%d alternatives, want %d", len(got.Top), n)
		}
		for i, l := range got.Top {
			check(l, order[i])
		}
	}
}

func TestCertain(t *testing.T) {
	peaked := func(gap float64, rivals int) []float32 {
		logits := make([]float32, 1000)
		for i := range logits {
			logits[i] = -1000
		}
		logits[3] = 5
		for i := range rivals {
			logits[100+i] = float32(5 - gap)
		}
		return logits
	}
	for _, tt := range []struct {
		name   string
		logits []float32
		want   bool
	}{
		{"alone", peaked(0, 0), true},
		{"one rival at 0.9999", peaked(9.2, 1), false},
		{"one rival beyond", peaked(9.22, 1), true},
		{"many rivals that are far", peaked(12, 20), false},
		{"as many that are farther", peaked(13, 20), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := certain(tt.logits, 3); got != tt.want {
				t.Errorf("certain = %v, p = %v", got, probabilities(tt.logits)[3])
			}
		})
	}
}
