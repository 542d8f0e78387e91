package bench

import "slices"

// Summary is the middle of some values and how far they lie apart.
type Summary struct {
	Median float64 `json:"median"`
	Least  float64 `json:"least"`
	Most   float64 `json:"most"`
}

// summarise returns the summary of at least one value. The median of an even
// number is the mean of the two in the middle.
func summarise(values []float64) Summary {
	v := slices.Sorted(slices.Values(values))
	n := len(v)
	return Summary{Median: (v[(n-1)/2] + v[n/2]) / 2, Least: v[0], Most: v[n-1]}
}

// over summarises one number of each sample.
func over(samples []Sample, number func(Sample) float64) Summary {
	values := make([]float64, len(samples))
	for i, s := range samples {
		values[i] = number(s)
	}
	return summarise(values)
}

// Numbers are what runs of one length say; nil where it was not asked for, or
// is refused.
type Numbers struct {
	FirstToken *Summary `json:"first_token_s,omitempty"`
	Prefill    *Summary `json:"prefill_tokens_per_s,omitempty"`
	Decode     *Summary `json:"decode_tokens_per_s,omitempty"`
}

// numbersOf looks at runs as those of a prompt's length, of a context, or both.
func numbersOf(runs []Sample, prompt, context bool) (n Numbers) {
	if len(runs) == 0 {
		return n
	}
	if prompt {
		first, rate := over(runs, func(s Sample) float64 { return s.FirstToken.Seconds() }), over(runs, Sample.prefillRate)
		n.FirstToken, n.Prefill = &first, &rate
	}
	if context {
		rate := over(runs, func(s Sample) float64 { return 1 / s.step() })
		n.Decode = &rate
	}
	return n
}
