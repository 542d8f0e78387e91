package engine

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"calla/core/backend/backendtest"
	"calla/core/model"
)

// The tokens that scripted conversations are made of.
const (
	imStart = 1
	imEnd   = 2
	newline = 3
	eos     = 4
	words   = 16 // the first token that is no control token
	vocab   = 256
)

func testOptions() Options {
	return Options{
		MaxSeq: 40000, PrefillChunk: 512, Queue: 64, CacheEntries: 2,
		Vocab: vocab, Turn: Turn{imEnd, newline}, StopTokens: []int32{imEnd, eos},
	}
}

func loader(d *backendtest.Device) Loader {
	return func(ctx context.Context, progress func(done, total int64)) (*model.Model, func() error, error) {
		w, err := d.Load(ctx, nil, progress)
		if err != nil {
			return nil, nil, err
		}
		m := model.New(d.Config(), w)
		return m, m.Close, nil
	}
}

// start runs an engine on d for the length of a test, and checks that nothing
// is open on the device after it.
func start(t *testing.T, d *backendtest.Device, o Options) *Engine {
	t.Helper()
	return startWith(t, d, nil, o)
}

// startWith is start with another loader, where not nil, than the device's own.
func startWith(t *testing.T, d *backendtest.Device, load Loader, o Options) *Engine {
	t.Helper()
	if d.Vocab == 0 {
		d.Vocab = vocab
	}
	if load == nil {
		load = loader(d)
	}
	e, err := New(load, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := e.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		if c := d.Counts(); c.States != 0 || c.Snapshots != 0 || c.Weights != 0 {
			t.Errorf("after Close the device holds %d states, %d snapshots, %d weights; want none", c.States, c.Snapshots, c.Weights)
		}
	})
	return e
}

// outcome is all that a generation sent.
type outcome struct {
	Result
	tokens   []int32
	logProbs []*LogProb
	stages   []Stage
}

func collect(g *Generation) (outcome, error) {
	var o outcome
	for {
		ev, err := g.Next(context.Background())
		if err == io.EOF {
			o.Result = g.Result()
			return o, nil
		}
		if err != nil {
			return o, err
		}
		if ev.Token < 0 {
			o.stages = append(o.stages, ev.Progress.Stage)
			continue
		}
		o.tokens = append(o.tokens, ev.Token)
		if ev.LogProb != nil {
			o.logProbs = append(o.logProbs, ev.LogProb)
		}
	}
}

func generate(t *testing.T, e *Engine, r Request) outcome {
	t.Helper()
	if r.LogProbs == 0 {
		r.LogProbs = NoLogProbs
	}
	g, err := e.Submit(context.Background(), r)
	if err != nil {
		t.Fatal(err)
	}
	o, err := collect(g)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// turn returns one message of n words as the template writes it; which words
// depends on seed.
func turn(seed, n int) []int32 {
	m := []int32{imStart, words + 1, newline}
	for i := range n {
		m = append(m, int32(words+(seed*31+i*7+i*i*3)%(vocab-words)))
	}
	return append(m, imEnd, newline)
}

// open is what a prompt ends with: the head of the reply, with an empty think
// block that history will not have.
var open = []int32{imStart, words + 2, newline, 5, newline, newline, 6, newline, newline}

func join(parts ...[]int32) []int32 {
	var out []int32
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func TestGenerateEndsAtStopToken(t *testing.T) {
	script := []int32{20, 21, 22, imEnd}
	d := &backendtest.Device{}
	prompt := join(turn(1, 5), open)
	d.Next = func(tokens []int32) int32 { return script[len(tokens)-len(prompt)] }
	e := start(t, d, testOptions())
	o := generate(t, e, Request{Prompt: prompt})
	if o.Reason != FinishStop || o.StopToken != imEnd || o.CompletionTokens != 3 || len(o.tokens) != 3 {
		t.Errorf("got %+v with tokens %v, want 3 tokens and a stop at %d", o.Result, o.tokens, imEnd)
	}
	if c := d.Counts(); c.PrefillRows != len(prompt) || c.DecodeRows != 3 {
		t.Errorf("device evaluated %d prompt and %d generated rows, want %d and 3", c.PrefillRows, c.DecodeRows, len(prompt))
	}
}

func TestContextIsEnforcedToTheToken(t *testing.T) {
	o := testOptions()
	o.MaxSeq = 100
	e := start(t, &backendtest.Device{Next: func([]int32) int32 { return words }}, o)
	for _, tt := range []struct {
		name            string
		prompt, maximum int
		want            int // completion tokens; 0: refused
	}{
		{"prompt leaves one token", 99, 0, 1},
		{"prompt fills the context", 100, 0, 0},
		{"prompt is one too long", 101, 0, 0},
		{"completion fits exactly", 60, 40, 40},
		{"completion is one too long", 60, 41, 0},
		{"completion without bound ends at the context", 60, 0, 40},
	} {
		t.Run(tt.name, func(t *testing.T) {
			prompt := make([]int32, tt.prompt)
			for i := range prompt {
				prompt[i] = words + int32(i)
			}
			g, err := e.Submit(context.Background(), Request{Prompt: prompt, MaxTokens: tt.maximum, LogProbs: NoLogProbs})
			if tt.want == 0 {
				var over *ContextError
				if !errors.As(err, &over) || over.Limit != 100 || over.Prompt != tt.prompt {
					t.Fatalf("Submit: %v, want a ContextError with both numbers", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := collect(g)
			if err != nil || got.CompletionTokens != tt.want || got.Reason != FinishLength {
				t.Errorf("got %d tokens, %q, %v; want %d, length", got.CompletionTokens, got.Reason, err, tt.want)
			}
		})
	}
}

func TestSubmitRefusesBadRequests(t *testing.T) {
	e := start(t, &backendtest.Device{}, testOptions())
	for _, tt := range []struct {
		name string
		r    Request
		want string
	}{
		{"empty prompt", Request{}, "engine: empty prompt, want at least one token"},
		{"token beyond the vocabulary", Request{Prompt: []int32{20, vocab}}, "engine: the prompt's token at 1 is not in the vocabulary of 256 tokens"},
		{"negative token", Request{Prompt: []int32{-1}}, "engine: the prompt's token at 0 is not in the vocabulary of 256 tokens"},
		{"temperature", Request{Prompt: []int32{20}, Sampling: Sampling{Temperature: 2.1}}, "engine: temperature: 2.1, want a number between 0 and 2"},
		{"bias for no token", Request{Prompt: []int32{20}, Sampling: Sampling{LogitBias: map[int32]float64{999: 1}}}, "engine: logit_bias: names a token that is not in the vocabulary of 256"},
		{"bias out of range", Request{Prompt: []int32{20}, Sampling: Sampling{LogitBias: map[int32]float64{9: 101}}}, "engine: logit_bias: 101, want a number between -100 and 100"},
		{"top log-probabilities", Request{Prompt: []int32{20}, LogProbs: 21}, "engine: top_logprobs: 21, want at most 20"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := e.Submit(context.Background(), tt.r)
			if err == nil || err.Error() != tt.want {
				t.Errorf("Submit: %v, want %s", err, tt.want)
			}
		})
	}
}
