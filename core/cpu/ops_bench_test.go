package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// benchMatrix returns a matrix of zeros: no kernel takes a short cut for them.
func benchMatrix(out, in, bits int) Matrix {
	return Matrix{
		Codes: make([]byte, out*in*bits/8), Scales: make([]byte, out*in/32), Biases: make([]byte, out*in/32),
		Out: out, In: in, Bits: bits,
	}
}

// forEachKernels runs a benchmark for each implementation.
func forEachKernels(b *testing.B, run func(b *testing.B, k *kernels)) {
	for _, k := range everyKernels {
		if k.Available() {
			b.Run(k.String(), func(b *testing.B) { run(b, k.kernels()) })
		}
	}
}

// One thread, as each of a device's; of the two sizes of one shape, one lies in
// a cache and one does not.
func BenchmarkQMatVec(b *testing.B) {
	for _, s := range []struct{ out, in, bits int }{{512, 2048, 4}, {2048, 512, 4}, {1 << 17, 2048, 4}, {256, 2048, 8}} {
		b.Run(fmt.Sprintf("out=%d/in=%d/bits=%d", s.out, s.in, s.bits), func(b *testing.B) {
			forEachKernels(b, func(b *testing.B, k *kernels) {
				m := benchMatrix(s.out, s.in, s.bits)
				y, x := make([]float32, s.out), make([]float32, s.in)
				sums := make([]float32, s.in/groupSize)
				var a activations
				if k.integer != nil {
					a = integerRows(k, x, s.in)
				}
				b.SetBytes(matrixBytes(m))
				for b.Loop() {
					if k.integer != nil {
						k.integer.matVec(y, m, 0, m.Out, a, 0)
					} else {
						qmatvec(BF16, y, m, 0, m.Out, x, sums)
					}
				}
			})
		})
	}
}

func BenchmarkQMatMul(b *testing.B) {
	for _, s := range []struct{ out, in, rows int }{
		{512, 2048, 1}, {512, 2048, 4}, {512, 2048, 16}, {512, 2048, 128}, {512, 2048, 512}, {2048, 512, 16},
	} {
		rows := s.rows
		b.Run(fmt.Sprintf("out=%d/in=%d/rows=%d", s.out, s.in, rows), func(b *testing.B) {
			forEachKernels(b, func(b *testing.B, k *kernels) {
				m := benchMatrix(s.out, s.in, 4)
				y, x := make([]float32, rows*m.Out), make([]float32, rows*m.In)
				product := func() { qmatmul(BF16, y, m, 0, m.Out, x, rows) }
				if k.integer != nil {
					batch := integerBatch(k, x, m.In)
					s := new(panelScratch)
					s.layOut(new(carver), m.In, rows)
					product = func() {
						for n := 0; n < m.Out; n += k.integer.panel {
							k.integer.multiply(s, y, m, n, batch, panel{m, n + k.integer.panel})
						}
					}
				}
				b.SetBytes(matrixBytes(m))
				for b.Loop() {
					product()
				}
				b.ReportMetric(float64(b.N)*float64(rows*m.Out*m.In)/1e9/b.Elapsed().Seconds(), "GMAC/s")
			})
		})
	}
}

// The state is what a step reads and writes.
func BenchmarkDeltaStep(b *testing.B) {
	forEachKernels(b, func(b *testing.B, kernels *kernels) {
		const dim = 128
		s, o := make([]float32, dim*dim), make([]float32, dim)
		q, k, v := make([]float32, dim), make([]float32, dim), make([]float32, dim)
		b.SetBytes(4 * 2 * dim * dim)
		for b.Loop() {
			kernels.deltaStep(BF16, o, s, q, k, v, 0.9, 0.5)
		}
	})
}

func BenchmarkDeltaChunk(b *testing.B) {
	forEachKernels(b, func(b *testing.B, k *kernels) {
		const rows, dim = 64, 128
		c, s := newChunkScratch(new(carver), dim, dim), make([]float32, dim*dim)
		for b.Loop() {
			k.deltaChunk(BF16, c, s, rows, dim, dim)
		}
		b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
	})
}

// The eight query heads of one KV head over a context; bytes are those of its
// keys and values in bfloat16.
func BenchmarkAttend(b *testing.B) {
	const dim, heads = 256, 8
	for _, n := range []int{64, 4096} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			forEachKernels(b, func(b *testing.B, k *kernels) {
				cells := make([]byte, 2*keyBlock*dim)
				w := &workerScratch{scores: make([]float32, heads*keyBlock)}
				for _, block := range []*[]float32{&w.keys, &w.values, &w.keysT} {
					*block = make([]float32, keyBlock*dim)
				}
				q, parts := make([]float32, heads*dim), make([]float32, heads*(2+dim))
				b.SetBytes(int64(2 * 2 * n * dim))
				for b.Loop() {
					for from := 0; from < n; from += keyBlock {
						k.unpack(BF16, w.keys, cells)
						k.unpack(BF16, w.values, cells)
						k.turnKeys(w, keyBlock, dim)
						k.foldBlock(w, keyBlock, headRows{q, heads, dim, dim}, parts, 0.0625)
					}
				}
			})
		})
	}
}

func BenchmarkConv(b *testing.B) {
	forEachKernels(b, func(b *testing.B, k *kernels) {
		const rows, channels, taps = 1, 8192, 4
		y, x := make([]float32, rows*channels), make([]float32, (taps-1+rows)*channels)
		w := make([]float32, channels*taps)
		for b.Loop() {
			k.conv(BF16, y, x, w, rows, channels, 0, channels)
		}
		b.ReportMetric(float64(b.N*rows)/b.Elapsed().Seconds(), "rows/s")
	})
}

func BenchmarkRMSNorm(b *testing.B) {
	forEachKernels(b, func(b *testing.B, k *kernels) {
		const width = 2048
		y, x, w := make([]float32, width), make([]float32, width), make([]float32, width)
		for b.Loop() {
			k.rmsNorm(BF16, y, x, w, 1e-6)
		}
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	})
}

func BenchmarkRoute(b *testing.B) {
	experts, weights, logits := make([]int32, 8), make([]float32, 8), make([]float32, 256)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range logits {
		logits[i] = float32(r.NormFloat64())
	}
	for b.Loop() {
		Route(experts, weights, logits)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkArgmax(b *testing.B) {
	forEachKernels(b, func(b *testing.B, k *kernels) {
		logits := make([]float32, 248320)
		b.SetBytes(int64(4 * len(logits)))
		for b.Loop() {
			k.argmax(logits)
		}
	})
}

// An empty job: what handing it out costs.
func BenchmarkPool(b *testing.B) {
	for _, threads := range []int{1, 2, 4} {
		b.Run(fmt.Sprintf("threads=%d", threads), func(b *testing.B) {
			p := newPool(threads)
			defer p.close()
			for b.Loop() {
				p.run(2*threads, func(_, _ int) {})
			}
		})
	}
}
