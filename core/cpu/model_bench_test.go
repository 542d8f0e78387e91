package cpu_test

import (
	"fmt"
	"testing"

	"calla/core/checkpoint"
	"calla/core/conform"
	"calla/core/cpu"
)

// demo is the model that the product brings along.
func demo() checkpoint.Source { return checkpoint.Dir("../../bundle/demo") }

// BenchmarkDecode evaluates the demo model's tokens one by one, at the start of
// a context.
func BenchmarkDecode(b *testing.B) {
	for _, threads := range []int{1, 2} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			m := conform.Load(b, cpu.New(cpu.Options{Threads: threads}), demo())
			s, err := m.NewState(512)
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			for b.Loop() {
				if s.Len() == s.Cap() {
					s.Reset()
				}
				if _, err := m.Decode(s, 100); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tokens/s")
		})
	}
}

// BenchmarkPrefill evaluates the demo model's prompts from an empty state.
func BenchmarkPrefill(b *testing.B) {
	for _, rows := range []int{64, 512} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("rows=%d/threads=%d", rows, threads), func(b *testing.B) {
				m := conform.Load(b, cpu.New(cpu.Options{Threads: threads}), demo())
				s, err := m.NewState(rows)
				if err != nil {
					b.Fatal(err)
				}
				defer s.Close()
				tokens := make([]int32, rows)
				for i := range tokens {
					tokens[i] = int32(i*37) % 4096
				}
				for b.Loop() {
					s.Reset()
					if _, err := m.Prefill(s, tokens, []int{0}, true); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "tokens/s")
			})
		}
	}
}
