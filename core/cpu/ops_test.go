package cpu_test

import (
	"testing"

	"calla/core/conform"
	"calla/core/cpu"
)

func TestOps(t *testing.T) {
	for _, r := range []cpu.Rounding{cpu.BF16, cpu.F32} {
		t.Run(r.String(), func(t *testing.T) { conform.Ops(t, operations(r)) })
	}
}

func operations(r cpu.Rounding) conform.Operations {
	return conform.Operations{
		Rounded:    r == cpu.BF16,
		RMSNorm:    func(y, x, w []float32, eps float32) { cpu.RMSNorm(r, y, x, w, eps) },
		GatedNorm:  func(y, x, z, w []float32, eps float32) { cpu.GatedNorm(r, y, x, z, w, eps) },
		UnitNorm:   func(x []float32, width int, scale float32) { cpu.UnitNorm(r, x, width, scale) },
		SwiGLU:     func(gate, up []float32) { cpu.SwiGLU(r, gate, up) },
		OutputGate: func(x, gate []float32) { cpu.OutputGate(r, x, gate) },
		QMatVec:    func(y []float32, w conform.Matrix, x []float32) { cpu.QMatVec(r, y, cpu.Matrix(w), x) },
		QMatMul: func(y []float32, w conform.Matrix, x []float32, rows int) {
			cpu.QMatMul(r, y, cpu.Matrix(w), x, rows)
		},
		Embed: func(h []float32, table conform.Matrix, tokens []int32) { cpu.Embed(r, h, cpu.Matrix(table), tokens) },
		Conv: func(y, x, w []float32, rows, channels int) {
			// In two parts, as two goroutines would.
			cpu.Conv(r, y, x, w, rows, channels, 0, channels/3)
			cpu.Conv(r, y, x, w, rows, channels, channels/3, channels)
		},
		Gates: func(b, a, rate, dt []float32) { cpu.Gates(r, b, a, rate, dt) },
		DeltaStep: func(o, s, q, k, v []float32, decay, beta float32) {
			cpu.DeltaStep(r, o, s, q, k, v, decay, beta)
		},
		DeltaChunk: func(o, s, q, k, v, decay, beta []float32) { cpu.DeltaChunk(r, o, s, q, k, v, decay, beta) },
		Rope: func(x []float32, position, dims int, theta float64) {
			cos, sin := make([]float32, dims/2), make([]float32, dims/2)
			cpu.RopeAngles(cos, sin, position, cpu.RopeFrequencies(dims, theta))
			cpu.Rope(r, x, cos, sin)
		},
		Attend: func(o, q, keys, values []float32, scale float32) { cpu.Attend(r, o, q, keys, values, scale) },
		Route:  cpu.Route,
		Argmax: cpu.Argmax,
	}
}
