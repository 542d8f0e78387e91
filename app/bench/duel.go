package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Side is what was measured of one of two servers at one length.
type Side struct {
	Counted int `json:"prompt_tokens"` // of the text, in the middle
	Numbers
	Runs     []Sample   `json:"runs"`
	Rejected []Rejected `json:"rejected,omitempty"`
}

// Pair is what two servers made of the same texts.
type Pair struct {
	Tokens int  `json:"tokens"` // that the texts were made for
	Ours   Side `json:"ours"`
	Theirs Side `json:"theirs"`

	// How many times as fast ours is, of the rounds in the middle; nil where
	// refused.
	FirstToken *Summary `json:"first_token_ratio,omitempty"`
	Prefill    *Summary `json:"prefill_ratio,omitempty"`
	Decode     *Summary `json:"decode_ratio,omitempty"`

	Wanted  int    `json:"rounds_wanted"`
	Note    string `json:"note,omitempty"` // what counts as the same work
	Refused string `json:"refused,omitempty"`
}

// Duel measures two servers by turns on one machine.
type Duel struct {
	Ours, Theirs Asked
	// OurWatch is of the threads of this process, where our server runs in it,
	// TheirWatch of the machine alone.
	OurWatch, TheirWatch *Watch
	// Seed makes the texts' first lines; take another each time.
	Seed uint64
	Tell func(line string) // as Runner.Tell

	size   sizing
	texts  int
	silent error // of a server that stood still: it is asked nothing more
}

// Asked is a server that answers texts.
type Asked interface {
	Ask(ctx context.Context, text string, tokens int) (Sample, error)
}

// Run measures a plan with texts, the shortest length first. When ctx ends it
// returns what it has.
func (d *Duel) Run(ctx context.Context, p Plan) ([]Pair, error) {
	var err error
	if d.size, err = sizingOf(ctx, d.Ours, d.Seed); err != nil {
		return nil, err
	}
	var pairs []Pair
	for _, n := range p.lengths() {
		x := Pair{Tokens: n, Wanted: p.Runs, Ours: Side{Runs: []Sample{}}, Theirs: Side{Runs: []Sample{}}}
		switch {
		case d.silent != nil:
			x.Refused = fmt.Sprintf("not tried after a shorter text: %v", d.silent)
		case ctx.Err() == nil:
			if d.Tell != nil {
				d.Tell(fmt.Sprintf("%d tokens, then %d more: a warm-up and %d rounds of both", n, p.Tokens, p.Runs))
			}
			prompt, context := slices.Contains(p.Prompts, n), slices.Contains(p.Contexts, n)
			d.measure(ctx, &x, p.Tokens, context)
			x.summarise(prompt, context)
		}
		pairs = append(pairs, x)
	}
	return pairs, nil
}

// measure fills in the rounds of a pair, in the order ours, theirs, theirs,
// ours, so that what the machine does meanwhile falls on both. A round counts
// where both of its runs do; timed says that decode is measured too.
func (d *Duel) measure(ctx context.Context, x *Pair, tokens int, timed bool) {
	for _, a := range []Asked{d.Ours, d.Theirs} {
		if _, err := a.Ask(ctx, d.next(x.Tokens), tokens); err != nil && !errors.Is(err, errEmpty) {
			if ctx.Err() == nil {
				x.Refused = fmt.Sprintf("the warm-up failed: %v", err)
				d.stoodStill(err)
			}
			return
		}
	}
	failures := 0
	for number := 0; number < x.Wanted*triesPerRun && len(x.Ours.Runs) < x.Wanted && failures < maxFailures && d.silent == nil; number++ {
		failed := d.round(ctx, x, number, tokens, timed)
		if ctx.Err() != nil {
			return
		}
		if failures++; !failed {
			failures = 0
		}
	}
	x.Refused = tooFew(len(x.Ours.Runs), x.Wanted, slices.Concat(x.Ours.Rejected, x.Theirs.Rejected))
}

// round asks both servers with one text and adds what they took, where both
// count. It reports whether one of them failed.
func (d *Duel) round(ctx context.Context, x *Pair, number, tokens int, timed bool) (failed bool) {
	text := d.next(x.Tokens)
	var samples [2]Sample
	sound := true
	for turn := range 2 {
		who := turn
		if number%2 == 1 {
			who = 1 - turn
		}
		s, why, err := d.turn(ctx, who, text, tokens, timed)
		if ctx.Err() != nil {
			return false
		}
		if err != nil {
			// An empty answer is one that ended early.
			failed, why = failed || !errors.Is(err, errEmpty), err.Error()
			d.stoodStill(err)
		}
		if why != "" {
			side := x.side(who)
			side.Rejected = reject(side.Rejected, why)
			sound = false
		}
		samples[who] = s
	}
	if sound {
		x.Ours.Runs = append(x.Ours.Runs, samples[ours])
		x.Theirs.Runs = append(x.Theirs.Runs, samples[theirs])
	}
	return failed
}

// stoodStill notes a server that was silent for longer than anybody waits: each
// further request would last as long.
func (d *Duel) stoodStill(err error) {
	if errors.Is(err, errSilent) {
		d.silent = err
	}
}

// The sides, by number.
const (
	ours = iota
	theirs
)

func (x *Pair) side(who int) *Side {
	if who == ours {
		return &x.Ours
	}
	return &x.Theirs
}

// next returns a text of so many tokens that was not sent before.
func (d *Duel) next(tokens int) string {
	d.texts++
	return text(d.Seed, d.texts, d.size.words(tokens))
}

// turn asks one of the servers and says why that does not count.
func (d *Duel) turn(ctx context.Context, who int, text string, tokens int, timed bool) (s Sample, why string, err error) {
	asked, watch := d.Ours, d.OurWatch
	if who == theirs {
		asked, watch = d.Theirs, d.TheirWatch
	}
	end := watch.begin()
	s, err = asked.Ask(ctx, text, tokens)
	disturbed := end()
	if err != nil {
		return s, "", err
	}
	if !timed {
		tokens = 0
	}
	if why = refuse(s, 0, tokens, headTokens); why == "" {
		why = disturbed
	}
	return s, why, nil
}

// summarise makes the numbers of both sides and their ratios.
func (x *Pair) summarise(prompt, context bool) {
	if x.Refused != "" || len(x.Ours.Runs) == 0 {
		return
	}
	x.Ours.summarise(prompt, context)
	x.Theirs.summarise(prompt, context)
	x.Note, x.Refused = sameWork(x.Tokens, x.Ours.Counted, x.Theirs.Counted)
	if x.Refused != "" {
		x.Ours.Numbers, x.Theirs.Numbers = Numbers{}, Numbers{}
		return
	}
	if prompt {
		x.FirstToken = x.ratio(func(s Sample) float64 { return 1 / s.FirstToken.Seconds() })
		x.Prefill = x.ratio(Sample.prefillRate)
		if x.Note != "" {
			// The same text, so the same tokens for both.
			x.Prefill = x.ratio(func(s Sample) float64 { return 1 / s.Prefill.Seconds() })
		}
	}
	if context {
		x.Decode = x.ratio(func(s Sample) float64 { return 1 / s.step() })
	}
}

func (s *Side) summarise(prompt, context bool) {
	s.Counted = int(over(s.Runs, func(s Sample) float64 { return float64(s.Prompt) }).Median)
	s.Numbers = numbersOf(s.Runs, prompt, context)
}

// ratio returns ours over theirs, round by round.
func (x *Pair) ratio(speed func(Sample) float64) *Summary {
	var all []float64
	for i, s := range x.Ours.Runs {
		all = append(all, speed(s)/speed(x.Theirs.Runs[i]))
	}
	r := summarise(all)
	return &r
}
