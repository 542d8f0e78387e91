package cpu

import (
	"fmt"
	"os"
	"testing"
	"time"

	"calla/core/checkpoint"
	"calla/core/conform"
	"calla/core/model"
)

// benchModels returns the folders of the models that there are: the demo model,
// and those that testdata/slice/README.md of package conform says how to make.
func benchModels() map[string]string {
	models := map[string]string{"demo": "../../bundle/demo"}
	for name, variable := range map[string]string{"slice": "CALLA_SLICE", "full_vocabulary": "CALLA_SLICE_FULL_VOCABULARY"} {
		if dir := os.Getenv(variable); dir != "" {
			models[name] = dir
		}
	}
	return models
}

// forEveryModel runs a benchmark for each model, implementation and number of
// goroutines.
func forEveryModel(b *testing.B, run func(b *testing.B, m *model.Model, d *Device)) {
	for name, dir := range benchModels() {
		for _, k := range everyKernels {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%v/threads=%d", name, k, threads), func(b *testing.B) {
					if !k.Available() {
						b.Skip("this processor has not the instructions")
					}
					d := New(Options{Threads: threads, Kernels: k})
					run(b, conform.Load(b, d, checkpoint.Dir(dir)), d)
				})
			}
		}
	}
}

// tokenBytes returns the bytes of weights that a decoded token reads.
func tokenBytes(m *model.Model) int64 {
	w, c := m.Weights().(*weights), m.Config()
	n := matrixBytes(w.head)
	for _, l := range w.layers {
		list := []Matrix{l.moe.router, l.moe.mix, l.moe.sharedGate, l.moe.sharedUp, l.moe.shared}
		if d := l.delta; d != nil {
			list = append(list, d.qkv, d.z, d.b, d.a, d.out)
		}
		if a := l.attention; a != nil {
			list = append(list, a.q, a.k, a.v, a.out)
		}
		for _, m := range list {
			n += matrixBytes(m)
		}
		for _, s := range []stack{l.moe.gate, l.moe.up, l.moe.down} {
			n += int64(c.ExpertsPerToken) * matrixBytes(s.expert(0))
		}
	}
	return n
}

func matrixBytes(m Matrix) int64 { return int64(len(m.Codes) + len(m.Scales) + len(m.Biases)) }

// bandwidth returns the best of some reads of memory that no cache holds, in
// bytes a second.
func bandwidth(d *Device) float64 {
	memory := make([]byte, 256<<20)
	for i := 0; i < len(memory); i += 4096 {
		memory[i] = 1 // the page exists
	}
	best := 0.0
	for range 5 {
		start := time.Now()
		d.Read(memory)
		best = max(best, float64(len(memory))/time.Since(start).Seconds())
	}
	return best
}

// BenchmarkDecode evaluates tokens one by one, at the start of a context. Beside
// the rate it says which share of the read bandwidth, measured just before, the
// weights make.
func BenchmarkDecode(b *testing.B) {
	forEveryModel(b, func(b *testing.B, m *model.Model, d *Device) {
		s, err := m.NewState(512)
		if err != nil {
			b.Fatal(err)
		}
		defer s.Close()
		peak := bandwidth(d)
		b.SetBytes(tokenBytes(m))
		token := int32(0)
		for b.Loop() {
			if s.Len() == s.Cap() {
				s.Reset()
			}
			token = (token*37 + 11) % int32(m.Config().Vocab)
			if _, err := m.Decode(s, token); err != nil {
				b.Fatal(err)
			}
		}
		rate := float64(b.N) / b.Elapsed().Seconds()
		b.ReportMetric(rate, "tokens/s")
		b.ReportMetric(peak/1e9, "read-GB/s")
		b.ReportMetric(rate*float64(tokenBytes(m))/peak, "of-bandwidth")
	})
}

// BenchmarkPrefill evaluates prompts from an empty state.
func BenchmarkPrefill(b *testing.B) {
	for _, rows := range []int{128, 512, 2048} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			forEveryModel(b, func(b *testing.B, m *model.Model, _ *Device) { prefill(b, m, rows) })
		})
	}
}

// prefill evaluates a prompt of rows tokens in calls of 512.
func prefill(b *testing.B, m *model.Model, rows int) {
	s, err := m.NewState(rows)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	tokens := make([]int32, rows)
	for i := range tokens {
		tokens[i] = int32(i*37) % 4096
	}
	evaluate := func() {
		s.Reset()
		for from := 0; from < rows; from += 512 {
			to := min(from+512, rows)
			if _, err := m.Prefill(s, tokens[from:to], []int{0}, to == rows); err != nil {
				b.Fatal(err)
			}
		}
	}
	evaluate() // so that all weights are mapped
	for b.Loop() {
		evaluate()
	}
	b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "tokens/s")
}
