package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"calla/app/power"
)

// good is what a scripted target answers where its script says nothing else.
func good(prompt, tokens int) Sample {
	return Sample{
		Prompt: prompt, Generated: tokens, FirstToken: time.Duration(prompt) * time.Millisecond,
		Prefill: time.Duration(prompt) * time.Millisecond, Decode: time.Duration(tokens-1) * 10 * time.Millisecond,
	}
}

// script is a target whose run n, counted from 0, is changed by change.
type script struct {
	runs   int
	change func(run int, s *Sample) error
}

func (t *script) Run(_ context.Context, prompt, tokens int) (Sample, error) {
	s := good(prompt, tokens)
	var err error
	if t.change != nil {
		err = t.change(t.runs, &s)
	}
	t.runs++
	return s, err
}

var onePoint = Plan{Prompts: []int{100}, Contexts: []int{100}, Tokens: 11, Runs: 5}

func TestRunnerRefuses(t *testing.T) {
	always := func(f func(*Sample)) func(int, *Sample) error {
		return func(_ int, s *Sample) error { f(s); return nil }
	}
	for _, tt := range []struct {
		name     string
		change   func(run int, s *Sample) error
		runs     int // that count
		refused  string
		rejected int
	}{
		{"all is well", nil, 5, "", 0},
		{"a cold first run", func(run int, s *Sample) error {
			if run == 0 {
				s.Prefill *= 50
			}
			return nil
		}, 5, "", 0},
		{"a cache", always(func(s *Sample) { s.Cached = 1 }), 0, "came from a cache: turn", 15},
		{"a cache at times", func(run int, s *Sample) error { s.Cached = run % 2; return nil }, 5, "", 5},
		{"another client", always(func(s *Sample) { s.Others = 1 }), 0, "another request had the engine", 15},
		{"another count", always(func(s *Sample) { s.Prompt-- }), 0, "99 tokens of the prompt were evaluated, want 100", 15},
		{"an early end", always(func(s *Sample) { s.Generated = 7 }), 0, "ended before 8 tokens", 15},
		{"no stream", always(func(s *Sample) { s.Decode = 0 }), 0, "all tokens came at once", 15},
		{"the warm-up fails", func(int, *Sample) error { return errors.New("device is gone") }, 0, "the warm-up failed: device is gone", 0},
		{"a failure in the middle", func(run int, _ *Sample) error {
			if run == 3 {
				return errors.New("once")
			}
			return nil
		}, 5, "", 1},
		{"failures from the middle on", func(run int, _ *Sample) error {
			if run >= 3 {
				return errors.New("device is gone")
			}
			return nil
		}, 2, "2 of 5 runs count; device is gone", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := Runner{Target: &script{change: tt.change}, Watch: &Watch{}}
			x := r.Run(context.Background(), onePoint)[0]
			if len(x.Runs) != tt.runs || (x.Refused == "") != (tt.refused == "") || !strings.Contains(x.Refused, tt.refused) {
				t.Errorf("%d runs, refused %q, want %d, %q", len(x.Runs), x.Refused, tt.runs, tt.refused)
			}
			rejected := 0
			for _, j := range x.Rejected {
				rejected += j.Runs
			}
			if rejected != tt.rejected {
				t.Errorf("%d runs rejected, want %d: %v", rejected, tt.rejected, x.Rejected)
			}
			if (x.Prefill == nil) != (tt.refused != "") || (x.Decode == nil) != (tt.refused != "") {
				t.Errorf("prefill %v and decode %v of a point that is refused: %t", x.Prefill, x.Decode, tt.refused != "")
			}
			if x.Prefill != nil && (x.Prefill.Median != 1000 || x.FirstToken.Median != 0.1) {
				t.Errorf("prefill %v and first token %v, want 1000 tokens a second and 0.1 s", x.Prefill, x.FirstToken)
			}
			if x.Decode != nil && x.Decode.Median != 100 {
				t.Errorf("decode %v, want 100 tokens a second", x.Decode)
			}
		})
	}
}

// A run that the machine held back is tried again.
func TestRunnerTriesDisturbedRunsAgain(t *testing.T) {
	n := int64(0)
	w := Watch{now: time.Now, condition: func() power.Condition { return power.Condition{} }, read: func() counters {
		n++ // looks 1 and 2 are around the first run, 3 and 4 around the second
		return counters{throttled: time.Duration(max(0, min(n-1, 1)) + max(0, min(n-3, 1)))}
	}}
	r := Runner{Target: &script{}, Watch: &w}
	x := r.Run(context.Background(), onePoint)[0]
	if len(x.Runs) != 5 || len(x.Rejected) != 1 || x.Rejected[0].Runs != 2 || !strings.Contains(x.Rejected[0].Reason, "cpu.max") {
		t.Errorf("%d runs, rejected %v, want 5 and 2 for the quota", len(x.Runs), x.Rejected)
	}
}

// An interrupt leaves what was measured, and the report says what is missing.
func TestRunnerInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := Plan{Prompts: []int{100, 200, 300}, Contexts: []int{100}, Tokens: 11, Runs: 5}
	// Six runs at 100 with the warm-up, then the third that counts at 200.
	r := Runner{Watch: &Watch{}, Target: &script{change: func(run int, _ *Sample) error {
		if run == 9 {
			cancel()
			return ctx.Err()
		}
		return nil
	}}}
	report := Report{Tokens: p.Tokens, Points: r.Run(ctx, p)}
	report.Conclude()
	runs := []int{len(report.Points[0].Runs), len(report.Points[1].Runs), len(report.Points[2].Runs)}
	if runs[0] != 5 || runs[1] != 2 || runs[2] != 0 {
		t.Errorf("runs %v, want 5, 2 and 0", runs)
	}
	want := "200 tokens: 2 of 5 runs, it was stopped; 300 tokens: 0 of 5 runs, it was stopped"
	if got := strings.Join(report.Missing, "; "); got != want {
		t.Errorf("missing %q, want %q", got, want)
	}
	if report.Points[0].Decode == nil || report.Points[1].Decode != nil || report.Points[1].Prefill == nil {
		t.Errorf("numbers of %+v, want decode at 100 alone and prefill at 200 too", report.Points)
	}
}
