package bench

import "math"

// Coefficient is a fitted number and its standard error.
type Coefficient struct {
	Value float64 `json:"value"`
	Error float64 `json:"standard_error"`
}

// Fit is a curve of two coefficients through measured medians.
type Fit struct {
	First  Coefficient `json:"first"`
	Second Coefficient `json:"second"`
	// Worst is how far the farthest point lies from the curve, as a share of its
	// own value.
	Worst  float64 `json:"worst"`
	Points int     `json:"points"`
}

// minPoints leaves one point more than coefficients: fewer are met by any curve.
const minPoints = 3

// fitDecode fits seconds a token to intercept + slope × context.
func fitDecode(contexts, seconds []float64) (Fit, bool) {
	return fit(contexts, seconds, func(x float64) (float64, float64) { return 1, x })
}

// fitPrefill fits seconds of a prompt to a·n + b·n².
func fitPrefill(lengths, seconds []float64) (Fit, bool) {
	return fit(lengths, seconds, func(x float64) (float64, float64) { return x, x * x })
}

// fit finds the coefficients with the least sum of squares of relative
// deviations: times lie orders of magnitude apart, and noise is a share of them.
// It reports false where there are too few points, or they don't tell the two
// terms apart.
func fit(x, y []float64, terms func(float64) (float64, float64)) (Fit, bool) {
	if len(x) < minPoints {
		return Fit{}, false
	}
	// The normal equations of the rows scaled by 1/y, whose wanted value is 1.
	// The second column is scaled to the size of the first.
	var scale float64
	for i := range x {
		p, q := terms(x[i])
		scale = max(scale, math.Abs(q/p))
	}
	var pp, pq, qq, p1, q1 float64
	for i := range x {
		p, q := terms(x[i])
		p, q = p/y[i], q/scale/y[i]
		pp, pq, qq, p1, q1 = pp+p*p, pq+p*q, qq+q*q, p1+p, q1+q
	}
	det := pp*qq - pq*pq
	if !(det > 1e-12*pp*qq) {
		return Fit{}, false
	}
	f := Fit{Points: len(x)}
	f.First.Value = (p1*qq - q1*pq) / det
	second := (q1*pp - p1*pq) / det
	f.Second.Value = second / scale
	var squares float64
	for i := range x {
		p, q := terms(x[i])
		off := (p*f.First.Value+q*f.Second.Value)/y[i] - 1
		squares += off * off
		f.Worst = max(f.Worst, math.Abs(off))
	}
	variance := squares / float64(len(x)-2)
	f.First.Error = math.Sqrt(variance * qq / det)
	f.Second.Error = math.Sqrt(variance*pp/det) / scale
	return f, true
}
