package engine

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// exact returns the probabilities that parameters give logits, by the plainest
// reading of each: sort, cut, normalise. It is written apart from the sampler.
func exact(logits []float64, s Sampling) []float64 {
	type row struct {
		id int
		p  float64
	}
	var rows []row
	var sum float64
	for i, x := range logits {
		p := math.Exp(x / s.Temperature)
		rows = append(rows, row{i, p})
		sum += p
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		switch {
		case a.p > b.p:
			return -1
		case a.p < b.p:
			return 1
		}
		return 0
	})
	if s.TopK > 0 && s.TopK < len(rows) {
		rows = rows[:s.TopK]
	}
	total := func() (t float64) {
		for _, r := range rows {
			t += r.p
		}
		return t
	}
	if s.TopP > 0 && s.TopP < 1 {
		all, part := total(), 0.0
		for i, r := range rows {
			if part += r.p; part >= s.TopP*all {
				rows = rows[:i+1]
				break
			}
		}
	}
	if s.MinP > 0 {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.p < s.MinP*rows[0].p })
	}
	out := make([]float64, len(logits))
	all := total()
	for _, r := range rows {
		out[r.id] = r.p / all
	}
	return out
}

// chiSquareLimit is the value that a χ² variable with n degrees of freedom
// passes with probability 1e-6 (Wilson and Hilferty's approximation). Seeds are
// fixed, so a test that passes keeps passing; a wrong distribution over 200,000
// draws is far beyond it.
func chiSquareLimit(n int) float64 {
	const z = 4.7534 // of the normal distribution at 1e-6
	k := float64(n)
	a := 2 / (9 * k)
	return k * math.Pow(1-a+z*math.Sqrt(a), 3)
}

func TestSamplerDrawsFromTheExactDistribution(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	logits := make([]float32, 40)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 2)
	}
	logits[7] = logits[3] // equals
	for _, tt := range []struct {
		name string
		s    Sampling
	}{
		{"temperature 1", Sampling{Temperature: 1}},
		{"temperature 0.5", Sampling{Temperature: 0.5}},
		{"temperature 2", Sampling{Temperature: 2}},
		{"top-k", Sampling{Temperature: 1, TopK: 5}},
		{"top-k of one", Sampling{Temperature: 1, TopK: 1}},
		{"top-k beyond the vocabulary", Sampling{Temperature: 1, TopK: 1000}},
		{"top-p", Sampling{Temperature: 1, TopP: 0.8}},
		{"top-p close to 1", Sampling{Temperature: 2, TopP: 0.999}},
		{"top-p close to 0", Sampling{Temperature: 1, TopP: 1e-9}},
		{"min-p", Sampling{Temperature: 1, MinP: 0.1}},
		{"all of them", Sampling{Temperature: 1.3, TopK: 20, TopP: 0.9, MinP: 0.05}},
		{"the checkpoint's own", Sampling{Temperature: 1, TopK: 20, TopP: 0.95}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seed := uint64(11)
			tt.s.Seed = &seed
			wide := make([]float64, len(logits))
			for i, x := range logits {
				wide[i] = float64(x)
			}
			want := exact(wide, tt.s)
			p := newSampler(tt.s, nil, len(logits))
			const draws = 200_000
			counts := make([]int, len(logits))
			for range draws {
				id, err := p.sample(logits, nil)
				if err != nil {
					t.Fatal(err)
				}
				counts[id]++
			}
			var chi float64
			kinds := -1
			for i, n := range counts {
				if want[i] == 0 {
					if n > 0 {
						t.Errorf("token %d was drawn %d times, want never", i, n)
					}
					continue
				}
				kinds++
				e := want[i] * draws
				chi += (float64(n) - e) * (float64(n) - e) / e
			}
			if kinds > 0 && chi > chiSquareLimit(kinds) {
				t.Errorf("χ² = %.1f with %d degrees of freedom, want at most %.1f", chi, kinds, chiSquareLimit(kinds))
			}
		})
	}
}

// The check of the test above: it must see a temperature that is off by 2 %.
func TestDistributionTestCanFail(t *testing.T) {
	logits := []float64{0, 1, 2, 3, 4}
	want, is := exact(logits, Sampling{Temperature: 1}), exact(logits, Sampling{Temperature: 1.02})
	var chi float64
	for i := range want {
		d := (is[i] - want[i]) * 200_000
		chi += d * d / (want[i] * 200_000)
	}
	if chi < chiSquareLimit(len(want)-1) {
		t.Errorf("χ² of a wrong temperature is %.1f, below the limit %.1f", chi, chiSquareLimit(len(want)-1))
	}
}

func TestSamplerAdjustsLogits(t *testing.T) {
	logits := []float32{1, 3, 2, -1}
	for _, tt := range []struct {
		name      string
		s         Sampling
		prompt    []int32
		generated []int32
		want      int32
	}{
		{"greedy", Sampling{}, nil, nil, 1},
		{"bias lifts", Sampling{LogitBias: map[int32]float64{3: 5}}, nil, nil, 3},
		{"bias forbids", Sampling{LogitBias: map[int32]float64{1: -100}}, nil, nil, 2},
		{"presence counts once", Sampling{PresencePenalty: 0.9}, nil, []int32{1, 1, 1}, 1},
		{"presence over the margin", Sampling{PresencePenalty: 1.1}, nil, []int32{1}, 2},
		{"frequency counts each", Sampling{FrequencyPenalty: 0.4}, nil, []int32{1, 1, 1}, 2},
		{"presence leaves the prompt alone", Sampling{PresencePenalty: 2}, []int32{1}, nil, 1},
		{"repetition counts the prompt", Sampling{RepetitionPenalty: 1.6}, []int32{1}, nil, 2},
		{"repetition counts what was generated", Sampling{RepetitionPenalty: 1.6}, nil, []int32{1}, 2},
		{"repetition makes negative logits less likely", Sampling{RepetitionPenalty: 2, LogitBias: map[int32]float64{0: -2, 1: -100, 2: -100}}, []int32{0}, nil, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newSampler(tt.s, tt.prompt, len(logits))
			for _, id := range tt.generated {
				p.accept(id)
			}
			if got, err := p.sample(logits, nil); got != tt.want || err != nil {
				t.Errorf("sample = %d, %v; want %d", got, err, tt.want)
			}
		})
	}
}

func TestSamplerNeverChoosesPadding(t *testing.T) {
	logits := []float32{1, 2, 9, 9} // two tokens, two rows of padding
	for _, s := range []Sampling{{}, {Temperature: 2}, {Temperature: 1, TopK: 4}, {Temperature: 1, TopP: 0.99}, {PresencePenalty: 1}} {
		p := newSampler(s, nil, 2)
		for range 200 {
			if id, err := p.sample(logits, nil); err != nil || id >= 2 {
				t.Fatalf("%+v: sample = %d, %v; want a token", s, id, err)
			}
		}
	}
}

func TestSamplerRefusesWhatIsNotANumber(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, logits := range [][]float32{{nan, 1}, {1, nan}, {inf, 1}, {-inf, -inf}} {
		for _, s := range []Sampling{{}, {Temperature: 1}, {Temperature: 1, TopK: 1}, {FrequencyPenalty: 1}} {
			if _, err := newSampler(s, nil, 2).sample(logits, nil); !errors.Is(err, ErrNotANumber) {
				t.Errorf("%v with %+v: %v, want ErrNotANumber", logits, s, err)
			}
		}
	}
}

func TestLargestIsASortedHead(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		logits := make([]float32, 1+rng.IntN(300))
		var want []candidate
		for i := range logits {
			logits[i] = float32(rng.IntN(20))
			want = append(want, candidate{id: int32(i), logit: logits[i]})
		}
		slices.SortStableFunc(want, func(a, b candidate) int { return int(b.logit - a.logit) })
		k := rng.IntN(len(logits) + 1)
		if got := largest(logits, k, nil); !slices.Equal(got, want[:k]) {
			t.Fatalf("largest of %v, %d = %v, want %v", logits, k, got, want[:k])
		}
	}
}

func TestHeadIsTheShortest(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		c := make([]candidate, 1+rng.IntN(200))
		for i := range c {
			x := rng.IntN(12)
			c[i] = candidate{id: int32(i), logit: float32(x), weight: math.Exp2(float64(x - 12))}
		}
		want := slices.Clone(c)
		slices.SortStableFunc(want, func(a, b candidate) int { return int(b.logit - a.logit) })
		share := rng.Float64() * mass(c)
		n, sum := 0, 0.0
		for sum < share {
			sum += want[n].weight
			n++
		}
		got := slices.Clone(head(c, share))
		slices.SortFunc(got, func(a, b candidate) int {
			if a.likelier(b) {
				return -1
			}
			return 1
		})
		if !slices.Equal(got, want[:max(n, 1)]) {
			t.Fatalf("head of %v has %d candidates, want %d", share, len(got), n)
		}
	}
}

// What is kept of a whole vocabulary, and with what weight, is what the plain
// reading gives: for flat and peaked logits, with equals, far below the top.
func TestKeptTokensAreTheExactHead(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 100 {
		logits := make([]float32, 1+rng.IntN(3000))
		spread := []float64{0, 0.01, 1, 5, 40}[rng.IntN(5)]
		for i := range logits {
			logits[i] = float32(rng.NormFloat64() * spread)
			switch rng.IntN(6) {
			case 0, 1:
				logits[i] = logits[rng.IntN(i+1)]
			case 2:
				if i > 0 {
					logits[i] = float32(math.Inf(-1)) // never to be chosen
				}
			}
		}
		s := Sampling{Temperature: 0.1 + 2*rng.Float64(), TopP: rng.Float64()}
		if rng.IntN(2) == 0 {
			s.MinP = rng.Float64() / 10
		}
		wide := make([]float64, len(logits))
		for i, x := range logits {
			wide[i] = float64(x) - float64(slices.Max(logits)) // or exp would overflow
		}
		want := exact(wide, s)
		p := newSampler(s, nil, len(logits))
		if _, err := p.sample(logits, nil); err != nil {
			t.Fatal(err)
		}
		sum := 0.0
		for _, w := range p.weights {
			sum += w
		}
		for i, w := range p.weights {
			if math.Abs(w/sum-want[i]) > 1e-12 {
				t.Fatalf("%+v, spread %v: token %d of %d has probability %v, want %v", s, spread, i, len(logits), w/sum, want[i])
			}
		}
	}
}

func BenchmarkSample(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	logits := make([]float32, 248320)
	for i := range logits {
		logits[i] = float32(rng.NormFloat64() * 3)
	}
	for _, bb := range []struct {
		name string
		s    Sampling
	}{
		{"greedy", Sampling{}},
		{"temperature", Sampling{Temperature: 1}},
		{"checkpoint", Sampling{Temperature: 1, TopK: 20, TopP: 0.95}},
		{"top-p", Sampling{Temperature: 1, TopP: 0.95}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			p := newSampler(bb.s, nil, 248077)
			b.SetBytes(int64(len(logits)) * 4)
			for b.Loop() {
				if _, err := p.sample(logits, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
