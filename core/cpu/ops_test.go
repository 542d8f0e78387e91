package cpu

import (
	"math"
	"testing"

	"calla/core/conform"
)

// everyKernels are the implementations; tests skip what the processor can't
// run.
var everyKernels = []Kernels{Portable, AVX2, AVX512, AMX}

// forEveryKernels runs a test for each implementation.
func forEveryKernels(t *testing.T, run func(t *testing.T, k Kernels)) {
	for _, k := range everyKernels {
		t.Run(k.String(), func(t *testing.T) {
			if !k.Available() {
				t.Skip("this processor has not the instructions")
			}
			run(t, k)
		})
	}
}

func TestOps(t *testing.T) {
	for _, r := range []Rounding{BF16, F32} {
		t.Run(r.String(), func(t *testing.T) {
			forEveryKernels(t, func(t *testing.T, k Kernels) { conform.Ops(t, operations(r, k.kernels())) })
		})
	}
}

func operations(r Rounding, k *kernels) conform.Operations {
	o := conform.Operations{
		Rounded:    r == BF16,
		RMSNorm:    func(y, x, w []float32, eps float32) { k.rmsNorm(r, y, x, w, eps) },
		GatedNorm:  func(y, x, z, w []float32, eps float32) { k.gatedNorm(r, y, x, z, w, eps) },
		UnitNorm:   func(x []float32, width int, scale float32) { k.unitNorm(r, x, width, scale) },
		SwiGLU:     func(gate, up []float32) { k.swiGLU(r, gate, up) },
		OutputGate: func(x, gate []float32) { k.outputGate(r, x, gate) },
		QMatVec:    func(y []float32, w conform.Matrix, x []float32) { QMatVec(r, y, Matrix(w), x) },
		QMatMul: func(y []float32, w conform.Matrix, x []float32, rows int) {
			QMatMul(r, y, Matrix(w), x, rows)
		},
		Embed: func(h []float32, table conform.Matrix, tokens []int32) { Embed(r, h, Matrix(table), tokens) },
		Conv: func(y, x, w []float32, rows, channels int) {
			// In two parts, as two goroutines would.
			turned := turned(w, channels)
			k.conv(r, y, x, turned, rows, channels, 0, channels/3)
			k.conv(r, y, x, turned, rows, channels, channels/3, channels)
		},
		Gates: func(b, a, rate, dt []float32) { Gates(r, b, a, rate, dt) },
		DeltaStep: func(o, s, q, key, v []float32, decay, beta float32) {
			k.deltaStep(r, o, s, q, key, v, decay, beta)
		},
		DeltaChunk: func(o, s, q, key, v, decay, beta []float32) {
			deltaChunkBy(k, r, o, s, q, key, v, decay, beta)
		},
		Rope: func(x []float32, position, dims int, theta float64) {
			cos, sin := make([]float32, dims/2), make([]float32, dims/2)
			RopeAngles(cos, sin, position, RopeFrequencies(dims, theta))
			Rope(r, x, cos, sin)
		},
		Attend: func(o, q, keys, values []float32, scale float32) { attendBy(k, r, o, q, keys, values, scale) },
		Route:  Route,
		Argmax: k.argmax,
	}
	if r == BF16 && k.integer != nil {
		o.QMatVec = func(y []float32, w conform.Matrix, x []float32) { integerMatVec(k, r, y, Matrix(w), x) }
		o.QMatMul = func(y []float32, w conform.Matrix, x []float32, rows int) {
			integerMatMul(k, r, y, Matrix(w), x, rows)
		}
	}
	return o
}

// dirty returns memory that holds no number.
func dirty(n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(math.NaN())
	}
	return v
}

// integerRows prepares rows of activations.
func integerRows(k *kernels, x []float32, in int) activations {
	rows := len(x) / in
	a := newActivations(dirty(activationFloats(in, rows)), in)
	for t := range rows {
		a.clearRest(t)
		k.integer.prepare(a, t, 0, in, x[t*in:][:in])
	}
	return a
}

// integerBatch prepares rows as a batch.
func integerBatch(k *kernels, x []float32, in int) rowBatch {
	b := rowBatch{x: x, n: len(x) / in, in: in}
	k.integer.layOut(&b, dirty(batchFloats(in, b.n)))
	for t := range b.n {
		k.integer.prepareRow(b, t, 0, in)
	}
	return b
}

func integerMatVec(k *kernels, r Rounding, y []float32, w Matrix, x []float32) {
	a := integerRows(k, x, w.In)
	k.integer.matVec(y, w, 0, w.Out, a, 0)
	k.round(r, y)
}

func integerMatMul(k *kernels, r Rounding, y []float32, w Matrix, x []float32, rows int) {
	b := integerBatch(k, x, w.In)
	s := new(panelScratch)
	s.layOut(new(carver), w.In, rows)
	for n := 0; n < w.Out; n += k.integer.panel {
		k.integer.multiply(s, y, w, n, b, panel{w, n + k.integer.panel})
	}
	k.round(r, y)
}

func deltaChunkBy(k *kernels, r Rounding, o, s, q, key, v, decay, beta []float32) {
	n := len(decay)
	keyDim, valueDim := len(key)/n, len(v)/n
	c := newChunkScratch(new(carver), keyDim, valueDim)
	copy(c.q, q)
	copy(c.k, key)
	copy(c.v, v)
	copy(c.decay, decay)
	copy(c.beta, beta)
	k.deltaChunk(r, c, s, n, keyDim, valueDim)
	copy(o, c.o)
}

// attendBy is Attend, block by block as a pass does it.
func attendBy(k *kernels, r Rounding, o, q, keys, values []float32, scale float32) {
	dim := len(q)
	w := &workerScratch{
		keys: dirty(keyBlock * dim), values: dirty(keyBlock * dim), keysT: dirty(keyBlock * dim), scores: dirty(keyBlock),
	}
	part := partial(dirty(2 + dim))
	part.reset()
	for len(keys) > 0 {
		n := min(keyBlock, len(keys)/dim)
		copy(w.keys, keys[:n*dim])
		copy(w.values, values[:n*dim])
		k.turnKeys(w, n, dim)
		k.foldBlock(w, n, headRows{q, 1, dim, dim}, part, scale)
		keys, values = keys[n*dim:], values[n*dim:]
	}
	part.finish(r, o)
}
