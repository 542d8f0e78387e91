package engine

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// What is allowed is drawn as if there was nothing else.
func TestOnlyAllowedTokensAreChosen(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	logits := make([]float32, 200)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 3)
	}
	for _, tt := range []struct {
		name string
		s    Sampling
		ids  []int32
	}{
		{"greedy", Sampling{}, []int32{3, 64, 65, 199}},
		{"one", Sampling{Temperature: 1}, []int32{77}},
		{"temperature", Sampling{Temperature: 1}, []int32{0, 1, 63, 64, 127, 128, 190}},
		{"top-k beyond them", Sampling{Temperature: 2, TopK: 20, TopP: 0.95}, []int32{5, 70, 140}},
		{"top-k within them", Sampling{Temperature: 2, TopK: 2}, []int32{5, 70, 140, 199}},
		{"all filters", Sampling{Temperature: 1.5, TopK: 4, TopP: 0.9, MinP: 0.1}, []int32{2, 4, 6, 8, 10, 12, 14}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := uint64(9)
			tt.s.Seed = &seed
			mask := make([]uint64, 4)
			var few []float32
			for _, id := range tt.ids {
				mask[id/64] |= 1 << (id % 64)
				few = append(few, logits[id])
			}
			all, alone := newSampler(tt.s, nil, len(logits)), newSampler(tt.s, nil, len(few))
			for range 1000 {
				got, err := all.sample(logits, mask)
				want, _ := alone.sample(few, nil)
				if err != nil || got != tt.ids[want] {
					t.Fatalf("sample = %d, %v; want %d", got, err, tt.ids[want])
				}
			}
		})
	}
	if _, err := newSampler(Sampling{}, nil, 200).sample(logits, make([]uint64, 4)); err == nil {
		t.Errorf("a token was chosen of none")
	}
}

type guideFunc func(generated []int32) (Choice, error)

func (f guideFunc) Next(generated []int32) (Choice, error) { return f(generated) }

// made is a finished step.
type made []float32

func (made) Wait() error         { return nil }
func (m made) Logits() []float32 { return m }
func (m made) Argmax() int32 {
	id, err := argmax(m)
	if err != nil {
		return -1
	}
	return id
}

func TestGuideSteers(t *testing.T) {
	logits := []float32{0, 1, 2, 3, 4, 5, 6, 7}
	failed := errors.New("no way on")
	guide := guideFunc(func(generated []int32) (Choice, error) {
		switch len(generated) {
		case 0:
			return Choice{}, nil
		case 1:
			return Choice{Allowed: []uint64{0b1011}}, nil
		case 2:
			return Choice{Forced: true, Token: 2}, nil
		}
		return Choice{}, failed
	})
	c := newChooser(Request{Guide: guide, LogProbs: 1}, len(logits), true)
	for i, want := range []int32{7, 3, 2} {
		e, err := c.next(made(logits))
		if err != nil || e.Token != want {
			t.Fatalf("token %d is %d, %v; want %d", i, e.Token, err, want)
		}
		if e.LogProb.Token != want || e.LogProb.Top[0].Token != 7 {
			t.Errorf("log-probability %+v, want the model's own", e.LogProb)
		}
	}
	if _, err := c.next(made(logits)); !errors.Is(err, failed) {
		t.Errorf("a guide's error became %v", err)
	}
}

// BenchmarkSampleAllowed is what a choice among the allowed tokens costs at the
// real vocabulary's size.
func BenchmarkSampleAllowed(b *testing.B) {
	const vocab = 248_077
	rng := rand.New(rand.NewPCG(1, 1))
	logits := make([]float32, vocab)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 3)
	}
	some := func(share float64) []uint64 {
		mask := make([]uint64, (vocab+63)/64)
		for i := range vocab {
			if rng.Float64() < share {
				mask[i/64] |= 1 << (i % 64)
			}
		}
		return mask
	}
	for name, allowed := range map[string][]uint64{"all": nil, "most": some(0.95), "few": some(0.001)} {
		for how, s := range map[string]Sampling{"greedy": {}, "top-k": {Temperature: 1, TopK: 20, TopP: 0.95}} {
			b.Run(name+"/"+how, func(b *testing.B) {
				p := newSampler(s, nil, vocab)
				for b.Loop() {
					if _, err := p.sample(logits, allowed); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// A model whose output is not a number has failed, whichever tokens are allowed.
func TestNotANumberOutsideTheAllowedTokens(t *testing.T) {
	nan := float32(math.NaN())
	logits := []float32{1, nan, 2, 3}
	for _, s := range []Sampling{{}, {Temperature: 1}, {Temperature: 1, TopK: 1}, {FrequencyPenalty: 1}} {
		if _, err := newSampler(s, nil, 4).sample(logits, []uint64{0b1101}); !errors.Is(err, ErrNotANumber) {
			t.Errorf("%+v: %v, want ErrNotANumber", s, err)
		}
	}
}
