package bench

import "time"

// Steps can be told from an answer that came token by token. One that waited
// somewhere, in the server or for a reader that was late, comes in lumps: tokens
// that took their time look as if they had taken none.
const (
	// sameLump is the share of the mean time between events below which two came
	// together.
	sameLump = 0.1
	// firstShare is the most of an answer's events that may come with the first:
	// their steps are missing from the time of all. largestShare is the most that may
	// come together anywhere, which says that they waited, and tokensPerEvent the most
	// tokens that an event may have in the mean, or events a token: servers that guess
	// tokens ahead send a few at once.
	firstShare     = 0.125
	largestShare   = 0.25
	tokensPerEvent = 4
	// leastStep is the least time of a step as a share of the prefill's time a
	// token. A step reads all weights for one token, and a prefill shares that
	// among many: no step is much cheaper. Below fewPrompt tokens what is not
	// prefill weighs too much to say so.
	leastStep = 0.05
	fewPrompt = 64
)

// lumps returns how many events came with the first, and how many came together
// at most, from when each came.
func lumps(events []time.Time) (first, largest int) {
	if len(events) == 0 {
		return 0, 0
	}
	mean := events[len(events)-1].Sub(events[0]).Seconds() / float64(max(len(events)-1, 1))
	lump := 0
	for i, at := range events {
		if i > 0 && at.Sub(events[i-1]).Seconds() > sameLump*mean {
			lump = 0
		}
		lump++
		if lump == i+1 {
			first = lump
		}
		largest = max(largest, lump)
	}
	return first, largest
}

// inLumps reports whether an answer came in such a way that its steps can't be
// told.
func (s Sample) inLumps() bool {
	x, fresh := s.Stream, s.Prompt-s.Cached
	if x == nil {
		return false
	}
	return float64(x.First) > max(1, firstShare*float64(x.Events)) ||
		float64(x.Largest) > largestShare*float64(x.Events) ||
		s.Generated > tokensPerEvent*x.Events ||
		fresh >= fewPrompt && s.step() < leastStep*s.Prefill.Seconds()/float64(fresh)
}
