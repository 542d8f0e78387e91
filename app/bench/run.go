package bench

import (
	"context"
	"fmt"
	"slices"
)

// Point is what was measured at one length.
type Point struct {
	Tokens  int  `json:"tokens"` // of the prompt: the context of the first decoded token
	Prompt  bool `json:"is_prompt"`
	Context bool `json:"is_context"`

	Numbers
	// Bytes is what a decoded token reads and writes at the middle of the run,
	// Share that of the bandwidth, both 0 where unknown.
	Bytes int64   `json:"bytes_per_token,omitempty"`
	Share float64 `json:"share_of_bandwidth,omitempty"`

	Wanted   int        `json:"runs_wanted"`
	Runs     []Sample   `json:"runs"` // those that count
	Rejected []Rejected `json:"rejected,omitempty"`
	// Refused says why there are no numbers.
	Refused string `json:"refused,omitempty"`
}

// triesPerRun bounds how often a run that does not count is tried again, and
// maxFailures how often in a row a request may fail.
const (
	triesPerRun = 3
	maxFailures = 2
)

// Runner measures a target.
type Runner struct {
	Target Target
	Watch  *Watch
	// Tell, where not nil, is told before each length what comes.
	Tell func(line string)
}

// Run measures a plan, the shortest length first. When ctx ends it returns what
// it has: lengths that it did not come to have no runs.
func (r *Runner) Run(ctx context.Context, p Plan) []Point {
	var points []Point
	for _, n := range p.lengths() {
		x := Point{Tokens: n, Prompt: slices.Contains(p.Prompts, n), Context: slices.Contains(p.Contexts, n), Wanted: p.Runs, Runs: []Sample{}}
		if ctx.Err() == nil {
			if r.Tell != nil {
				r.Tell(fmt.Sprintf("%d tokens, then %d more: a warm-up and %d runs", n, p.Tokens, p.Runs))
			}
			r.measure(ctx, &x, p.Tokens)
			x.summarise()
		}
		points = append(points, x)
	}
	return points
}

// measure fills in the runs of a point.
func (r *Runner) measure(ctx context.Context, x *Point, tokens int) {
	if _, err := r.Target.Run(ctx, x.Tokens, tokens); err != nil {
		if ctx.Err() == nil {
			x.Refused = fmt.Sprintf("the warm-up failed: %v", err)
		}
		return
	}
	failures := 0
	for range x.Wanted * triesPerRun {
		if len(x.Runs) == x.Wanted || failures == maxFailures {
			break
		}
		s, why, err := r.one(ctx, x.Tokens, tokens)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil:
			failures++
			x.Rejected = reject(x.Rejected, err.Error())
			continue
		case why != "":
			x.Rejected = reject(x.Rejected, why)
		default:
			x.Runs = append(x.Runs, s)
		}
		failures = 0
	}
	x.Refused = tooFew(len(x.Runs), x.Wanted, x.Rejected)
}

// one runs a request and says why it does not count.
func (r *Runner) one(ctx context.Context, prompt, tokens int) (s Sample, why string, err error) {
	end := r.Watch.begin()
	s, err = r.Target.Run(ctx, prompt, tokens)
	disturbed := end()
	if err != nil {
		return s, "", err
	}
	if why = refuse(s, prompt, tokens, 0); why == "" {
		why = disturbed
	}
	return s, why, nil
}

// tooFew says why fewer runs count than are wanted, by the commonest reason, or
// nothing.
func tooFew(runs, wanted int, rejected []Rejected) string {
	if runs >= wanted || len(rejected) == 0 {
		return ""
	}
	most := slices.MaxFunc(rejected, func(a, b Rejected) int { return a.Runs - b.Runs })
	return fmt.Sprintf("%d of %d runs count; %s", runs, wanted, most.Reason)
}

// summarise makes the point's numbers of its runs, where it is not refused.
func (x *Point) summarise() {
	if x.Refused == "" {
		x.Numbers = numbersOf(x.Runs, x.Prompt, x.Context)
	}
}
