package bench

import (
	"fmt"
	"math"
	"slices"

	"calla/core/backend"
)

// The lengths that are measured where none are named.
const (
	Shortest = 256
	Longest  = 128 << 10
	// Lengths is how many of them, QuickLengths with --quick.
	Lengths      = 10
	QuickLengths = 3
)

// The runs that make a median, and the tokens of each.
const (
	MinRuns       = 5
	MaxRuns       = 1000
	MinTokens     = 8
	DefaultTokens = 32
)

// Plan says what is measured: prefill at each prompt length and decode at each
// context. A request of n prompt tokens measures both at n, so that a length in
// both lists is run once.
type Plan struct {
	Prompts  []int // lengths of prompts, in tokens, rising
	Contexts []int // tokens before the first decoded one, rising
	Tokens   int   // generated after each prompt
	Runs     int   // that count, after one that warms up
}

// NewPlan completes a plan for contexts of at most maxSeq tokens. One that names
// no lengths gets n of each, from Shortest to Longest or to what leaves room for
// the generated tokens; one that names prompts or contexts measures those alone.
func NewPlan(p Plan, maxSeq, n int) (Plan, error) {
	if p.Runs < MinRuns {
		return p, fmt.Errorf("bench: runs are %d, want at least %d: fewer have no spread worth the name", p.Runs, MinRuns)
	}
	if p.Runs > MaxRuns {
		return p, fmt.Errorf("bench: runs are %d, want at most %d", p.Runs, MaxRuns)
	}
	if p.Tokens < MinTokens {
		return p, fmt.Errorf("bench: generated tokens are %d, want at least %d: a step is timed over several", p.Tokens, MinTokens)
	}
	room := maxSeq - p.Tokens
	if len(p.Prompts) == 0 && len(p.Contexts) == 0 {
		if room < Shortest {
			return p, fmt.Errorf("bench: a context of %d has no room for %d prompt and %d generated tokens: raise --max-seq, or name --prompts and --contexts", maxSeq, Shortest, p.Tokens)
		}
		p.Prompts = spaced(Shortest, min(Longest, room), n)
		p.Contexts = p.Prompts
	}
	var err error
	if p.Prompts, err = checked("prompts", p.Prompts, room); err != nil {
		return p, err
	}
	p.Contexts, err = checked("contexts", p.Contexts, room)
	return p, err
}

// checked sorts lengths and refuses those that can't be run.
func checked(flag string, lengths []int, room int) ([]int, error) {
	lengths = slices.Clone(lengths)
	slices.Sort(lengths)
	lengths = slices.Compact(lengths)
	for _, n := range lengths {
		if n < 1 || n > room {
			return nil, fmt.Errorf("bench: %s has %d, want 1 to %d, which leaves room for the generated tokens", flag, n, max(room, 0))
		}
	}
	return lengths, nil
}

// spaced returns at most n lengths from a to b, each about the same factor
// longer than the one before. They are multiples of the sub-chunk, and powers of
// two where 128K is within reach; a narrow range has fewer.
func spaced(a, b, n int) []int {
	out := []int{a}
	for i := 1; i < n; i++ {
		x := float64(a) * math.Pow(float64(b)/float64(a), float64(i)/float64(n-1))
		at := int(math.Round(x)) / backend.SubChunk * backend.SubChunk
		if at > out[len(out)-1] {
			out = append(out, at)
		}
	}
	return out
}

// lengths returns all lengths that a request is made of, rising.
func (p Plan) lengths() []int {
	all := slices.Concat(p.Prompts, p.Contexts)
	slices.Sort(all)
	return slices.Compact(all)
}
