package engine

import (
	"math"
	"slices"
)

// logSumExp returns log Σ exp(x) over the rows that are tokens.
func logSumExp(logits []float32) float64 {
	top := slices.Max(logits)
	var sum float64
	for _, x := range logits {
		sum += expBelow(float64(x) - float64(top))
	}
	return float64(top) + math.Log(sum)
}

// logProb returns a token's log-probability and the n likeliest tokens.
func logProb(logits []float32, id int32, n int) *LogProb {
	lse := logSumExp(logits)
	out := &LogProb{Token: id, LogProb: float64(logits[id]) - lse}
	if n == 0 {
		return out
	}
	for _, x := range largest(logits, min(n, len(logits)), nil) {
		out.Top = append(out.Top, LogProb{Token: x.id, LogProb: float64(x.logit) - lse})
	}
	return out
}

// A token repeated this often with almost no doubt is a loop, not an answer:
// five hundred dashes on request are well below it.
const (
	loopTokens      = 1024
	loopProbability = 0.9999
)

// loopDetector counts how often the same token came without doubt. Of a run's
// first two tokens it knows only that they came: a device that is a step ahead
// has no logits of them any more.
type loopDetector struct {
	token int32
	run   int
}

// asks reports whether looping may want the logits of the next token.
func (d *loopDetector) asks() bool { return d.run >= 2 }

// looping takes the next token and its logits, which it may ask for, and reports
// whether the generation only repeats itself.
func (d *loopDetector) looping(id int32, logits func() []float32) bool {
	if d.run == 0 || d.token != id || d.asks() && !certain(logits(), id) {
		d.token, d.run = id, 1
		return false
	}
	d.run++
	return d.run >= loopTokens
}

// certain reports whether a token's probability is above loopProbability.
func certain(logits []float32, id int32) bool {
	// One other token this close is enough for a no, and soon found.
	near := logits[id] + float32(math.Log(1/loopProbability-1))
	for i, x := range logits {
		if x >= near && int32(i) != id {
			return false
		}
	}
	return float64(logits[id])-logSumExp(logits) > math.Log(loopProbability)
}
