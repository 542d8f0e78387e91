package bench

import "time"

// Steps can be told from an answer that came token by token. One that waited
// somewhere, in the server or for a reader that was late, comes in lumps: tokens
// that took their time look as if they had taken none.
const (
	// sameLump is the share of the mean time between events below which two came
	// together.
	sameLump = 0.1
	// largestShare is the most of an answer's events that may come together, and
	// tokensPerEvent the most tokens that an event may have in the mean, or events
	// a token: servers that guess tokens ahead send a few at once.
	largestShare   = 0.25
	tokensPerEvent = 4
	// leastStep is the least time of a step as a share of the prefill's time a
	// token. A step reads all weights for one token, and a prefill shares that
	// among many: no step is much cheaper. Below fewPrompt tokens what is not
	// prefill weighs too much to say so.
	leastStep = 0.05
	fewPrompt = 64
)

// largestLump returns how many events came together, at most.
func largestLump(events []time.Time) int {
	if len(events) == 0 {
		return 0
	}
	mean := events[len(events)-1].Sub(events[0]).Seconds() / float64(max(len(events)-1, 1))
	largest, lump := 1, 1
	for i := 1; i < len(events); i++ {
		if lump++; events[i].Sub(events[i-1]).Seconds() > sameLump*mean {
			lump = 1
		}
		largest = max(largest, lump)
	}
	return largest
}

// inLumps reports whether an answer came in such a way that its steps can't be
// told.
func (s Sample) inLumps() bool {
	x, fresh := s.Stream, s.Prompt-s.Cached
	if x == nil {
		return false
	}
	return float64(x.Largest) > largestShare*float64(x.Events) ||
		s.Generated > tokensPerEvent*x.Events ||
		fresh >= fewPrompt && s.step() < leastStep*s.Prefill.Seconds()/float64(fresh)
}
