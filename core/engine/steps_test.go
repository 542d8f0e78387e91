package engine

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/backend"
	"calla/core/backend/backendtest"
)

// alike runs a request on two devices, one of which is a step ahead, and returns
// both outcomes. What comes afterwards on the same prompt must be alike too.
func alike(t *testing.T, make func() *backendtest.Device, ask func(*Engine) (outcome, error)) (outcome, *backendtest.Device) {
	t.Helper()
	var seen [2][]outcome
	var last *backendtest.Device
	for i, ahead := range []bool{false, true} {
		last = make()
		last.Traits.Ahead = ahead
		e := start(t, last, testOptions())
		for range 2 {
			o, err := ask(e)
			if err != nil {
				o.Warning = err.Error()
			}
			o.Timing, o.stages = Timing{}, nil // those depend on time
			seen[i] = append(seen[i], o)
		}
		if c := last.Counts(); c.Unread != 0 || c.MostUnread > 2 || !ahead && c.Followed > 0 {
			t.Errorf("ahead %v: %+v, want no step unread and at most two at once", ahead, c)
		}
	}
	if d := cmp.Diff(seen[0], seen[1], cmp.AllowUnexported(outcome{})); d != "" {
		t.Errorf("a step ahead changed what comes out (-without +with):\n%s", d)
	}
	return seen[1][0], last
}

// Every way to end is the same with a step on the device that is one too many.
func TestAStepAheadChangesNothing(t *testing.T) {
	prompt := join(turn(1, 100), open)
	script := func(tokens ...int32) func([]int32) int32 {
		return func(seen []int32) int32 { return tokens[min(len(seen)-len(prompt), len(tokens)-1)] }
	}
	nan := float32(math.NaN())
	for _, tt := range []struct {
		name   string
		next   func([]int32) int32
		logits func(tokens []int32, logits []float32)
		r      Request
		follow int // calls that follow, of both runs
	}{
		{"a stop token first", script(imEnd), nil, Request{}, 0},
		{"a stop token", script(20, 21, 22, 23, imEnd), nil, Request{}, 8},
		{"a stop token after one", script(20, imEnd), nil, Request{}, 2},
		{"one token", script(20), nil, Request{MaxTokens: 1}, 0},
		{"two tokens", script(20, 21), nil, Request{MaxTokens: 2}, 0},
		{"three tokens", script(20, 21, 22), nil, Request{MaxTokens: 3}, 2},
		{"a token twice", script(20, 21, 21, 22, 23), nil, Request{MaxTokens: 5}, 4},
		{"a loop", script(20, 21), nil, Request{}, 4},
		{"doubtful repetitions", script(20), func(_ []int32, x []float32) { x[30] = 30 }, Request{MaxTokens: 50}, 48},
		{"not a number", script(20, 21, 22), func(seen []int32, x []float32) {
			if len(seen) == len(prompt)+2 {
				x[7] = nan
			}
		}, Request{}, 4},
		{"not a number at once", script(20), func(_ []int32, x []float32) { x[255] = nan }, Request{}, 0},
		{"infinite", script(20, 21, 22), func(seen []int32, x []float32) {
			if len(seen) == len(prompt)+1 {
				x[7] = float32(math.Inf(1))
			}
		}, Request{}, 2},
		{"equals: the lowest", nil, func(_ []int32, x []float32) { x[90], x[80], x[200] = 50, 50, 50 }, Request{MaxTokens: 9}, 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Prompt, tt.r.LogProbs = prompt, NoLogProbs
			make := func() *backendtest.Device { return &backendtest.Device{Next: tt.next, Logits: tt.logits} }
			_, d := alike(t, make, func(e *Engine) (outcome, error) {
				g, err := e.Submit(context.Background(), tt.r)
				if err != nil {
					t.Fatal(err)
				}
				return collect(g)
			})
			if c := d.Counts(); c.Followed != tt.follow {
				t.Errorf("%d calls followed, want %d", c.Followed, tt.follow)
			}
		})
	}
}

// Whatever needs more than the largest logit reads the logits before the device
// goes on.
func TestOnlyPlainRequestsAreAStepAhead(t *testing.T) {
	seed := uint64(1)
	free := guideFunc(func([]int32) (Choice, error) { return Choice{}, nil })
	for _, tt := range []struct {
		name string
		r    Request
		want bool
	}{
		{"greedy", Request{LogProbs: NoLogProbs}, true},
		{"filters without a temperature", Request{LogProbs: NoLogProbs, Sampling: Sampling{TopK: 3, TopP: 0.5}}, true},
		{"a temperature", Request{LogProbs: NoLogProbs, Sampling: Sampling{Temperature: 1, Seed: &seed}}, false},
		{"log-probabilities", Request{LogProbs: 0}, false},
		{"a guide", Request{LogProbs: NoLogProbs, Guide: free}, false},
		{"a penalty", Request{LogProbs: NoLogProbs, Sampling: Sampling{PresencePenalty: 1}}, false},
		{"a repetition penalty", Request{LogProbs: NoLogProbs, Sampling: Sampling{RepetitionPenalty: 1.1}}, false},
		{"a bias", Request{LogProbs: NoLogProbs, Sampling: Sampling{LogitBias: map[int32]float64{9: -5}}}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.r.Prompt, tt.r.MaxTokens = join(turn(1, 20), open), 20
			_, d := alike(t, func() *backendtest.Device { return &backendtest.Device{} }, func(e *Engine) (outcome, error) {
				g, err := e.Submit(context.Background(), tt.r)
				if err != nil {
					t.Fatal(err)
				}
				return collect(g)
			})
			if c := d.Counts(); c.Followed > 0 != tt.want {
				t.Errorf("%d calls followed, want some: %v", c.Followed, tt.want)
			}
		})
	}
}

// The engine's tokens are fewer than the model's logits: a device does not know
// which rows are padding, so its own choice counts for nothing.
func TestPaddingIsNeverChosen(t *testing.T) {
	for _, ahead := range []bool{false, true} {
		d := &backendtest.Device{Vocab: vocab + 8, Logits: func(_ []int32, x []float32) { x[vocab+3] = 100 }}
		d.Traits.Ahead = ahead
		o := generate(t, start(t, d, testOptions()), Request{Prompt: turn(1, 20), MaxTokens: 10})
		if o.CompletionTokens == 0 || slices.Max(o.tokens) >= vocab {
			t.Errorf("ahead %v: tokens %v, want some, all below %d", ahead, o.tokens, vocab)
		}
	}
}

// A generation that is stopped or cancelled between two steps leaves the cache
// as it was, and the device with nothing to do.
func TestAStepAheadOfAnEnd(t *testing.T) {
	for name, end := range map[string]func(*Generation){"stopped": (*Generation).Stop, "cancelled": (*Generation).Cancel} {
		t.Run(name, func(t *testing.T) {
			d := &backendtest.Device{}
			d.Traits.Ahead = true
			prompt := join(turn(1, 100), turn(2, 100), open)
			var g *Generation
			submitted := make(chan struct{})
			decoded := 0
			d.Step = func(c backend.Call) error {
				<-submitted
				if c.Phase == backend.Decode {
					if decoded++; decoded == 9 {
						end(g)
					}
				}
				return nil
			}
			e := start(t, d, testOptions())
			g = submit(t, e, context.Background(), prompt, 0)
			close(submitted)
			if _, err := collect(g); err != nil && !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			if err := e.WaitLoaded(context.Background()); err != nil { // the worker is done with it
				t.Fatal(err)
			}
			if c := d.Counts(); c.Unread != 0 || c.DecodeRows > 12 {
				t.Errorf("%+v, want no step unread and few after the end", c)
			}
			if o := sameAsCold(t, e, Request{Prompt: join(turn(1, 100), turn(2, 100), turn(3, 5)), MaxTokens: 4}); o.CachedTokens == 0 {
				t.Error("nothing of the prompt was kept")
			}
		})
	}
}

// A fault of the step that is waited for ends the generation, one of the step
// that nobody wants does not; the state is lost in both.
func TestFaultsOfStepsAhead(t *testing.T) {
	prompt := join(turn(1, 100), open)
	for _, tt := range []struct {
		name  string
		at    int // rows evaluated before the step at fault
		fails bool
	}{
		{"a step whose token is wanted", len(prompt) + 2, true},
		{"the step one too many", len(prompt) + 3, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var rows int
			var mended atomic.Bool
			d := &backendtest.Device{Next: func(seen []int32) int32 {
				return []int32{20, 21, 22, imEnd, 23}[min(len(seen)-len(prompt), 4)]
			}}
			d.Traits.Ahead = true
			d.Step = func(c backend.Call) error {
				if !mended.Load() && rows == tt.at {
					return errors.New("the GPU is gone")
				}
				rows += len(c.Tokens)
				return nil
			}
			e := start(t, d, testOptions())
			g := submit(t, e, context.Background(), prompt, 0)
			o, err := collect(g)
			var device *DeviceError
			if errors.As(err, &device) != tt.fails || !tt.fails && (err != nil || o.StopToken != imEnd || len(o.tokens) != 3) {
				t.Errorf("ended with %+v, %v; want a fault: %v", o, err, tt.fails)
			}
			mended.Store(true)
			if o := generate(t, e, Request{Prompt: prompt, MaxTokens: 1}); o.CachedTokens != 0 {
				t.Errorf("%d tokens of a lost state were reused", o.CachedTokens)
			}
			if c := d.Counts(); c.Unread != 0 {
				t.Errorf("%d steps unread", c.Unread)
			}
		})
	}
}
