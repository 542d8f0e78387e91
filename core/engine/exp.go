package engine

import "math"

const (
	expSteps = 64 // of the table, an octave
	expRound = 3 << 51
)

// expTable holds 2^(i/expSteps).
var expTable = func() (t [expSteps]float64) {
	for i := range t {
		t[i] = math.Exp2(float64(i) / expSteps)
	}
	return t
}()

// expBelow returns e^x of x at most 0, within 7e-16 of it; below
// e^-700 it returns 0. A whole vocabulary of them is most of what sampling
// costs, and this takes about half of math.Exp's time.
func expBelow(x float64) float64 {
	const (
		// ln 2 / expSteps in two parts, the first with zeros at its end so that
		// products with small integers are exact.
		hi = 0x1.62e42fefp-7
		lo = math.Ln2/expSteps - hi
	)
	if x < -700 {
		return 0
	}
	t := x*(expSteps/math.Ln2) + expRound // its low bits are the nearest integer
	k := int64(math.Float64bits(t)<<12) >> 12
	n := t - expRound
	r := x - n*hi - n*lo
	// |r| is at most ln 2 / 128, where five terms are enough.
	p := r + r*r*(1.0/2+r*(1.0/6+r*(1.0/24+r*(1.0/120))))
	s := expTable[k&(expSteps-1)]
	y := s + s*p
	return math.Float64frombits(math.Float64bits(y) + uint64(k>>6)<<52)
}
