package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"calla/core/tensor"
)

// forIntegerKernels runs a test for the implementations with integer products.
func forIntegerKernels(t *testing.T, run func(t *testing.T, k *kernels)) {
	forEveryKernels(t, func(t *testing.T, k Kernels) {
		if k.kernels().integer == nil {
			t.Skip("has products of float32 only")
		}
		run(t, k.kernels())
	})
}

// integersOf returns a row's integers in the order of its columns.
func (a activations) integersOf(t int) []int16 {
	cells := unsafe.Slice((*int16)(a.row(t)), a.scale/2)
	out := make([]int16, a.groups*groupSize)
	for c := range out {
		block, j := c/(2*groupSize), c%(2*groupSize)/8
		i, h := c%4, c/4%2
		out[c] = cells[block*blockBytes/2+i*32+2*j+h]
	}
	return out
}

// paramsOf returns scale and sum of a row's groups, those beyond the last too.
func (a activations) paramsOf(t int) (scales, sums []float32) {
	row := a.memory[t*a.stride/4:]
	return row[a.scale/4 : a.sum/4], row[a.sum/4:][:(a.sum-a.scale)/4]
}

func TestActivations(t *testing.T) {
	normal := func(i int) float32 { return float32(rand.New(rand.NewPCG(uint64(i), 3)).NormFloat64()) }
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, tt := range []struct {
		name  string
		in    int
		value func(i int) float32
		// exact says that nothing may be lost, finite that nothing is a NaN.
		exact, finite bool
	}{
		{"zeros", 64, func(int) float32 { return 0 }, true, true},
		{"one group", 64, normal, false, true},
		{"groups without a second", 192, normal, false, true},
		{"many groups", 4096, normal, false, true},
		{"bfloat16 within 2^7 of the largest", 2048, func(i int) float32 {
			return tensor.RoundBF16(float32(math.Copysign(math.Exp2(float64(i%8)-3), float64(i%3)-1))) * (1 + float32(i%128)/128)
		}, true, true},
		{"the largest bfloat16 of its size", 128, func(i int) float32 { return 255 * float32(1-2*(i%2)) }, true, true},
		{"an outlier", 128, func(i int) float32 {
			if i == 70 {
				return -3000
			}
			return normal(i)
		}, false, true},
		{"near the largest float32", 64, func(i int) float32 { return math.MaxFloat32 / 64 * normal(i) }, false, true},
		{"almost nothing", 64, func(i int) float32 { return 1e-30 * normal(i) }, false, true},
		{"not a number", 64, func(i int) float32 { return []float32{1, nan}[i/63] }, false, false},
		{"infinity", 64, func(i int) float32 { return []float32{1, -inf}[i/63] }, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			x := make([]float32, tt.in)
			for i := range x {
				x[i] = tt.value(i)
			}
			forIntegerKernels(t, func(t *testing.T, k *kernels) {
				checkActivations(t, integerRows(k, x, tt.in), x, tt.exact, tt.finite)
			})
		})
	}
}

func checkActivations(t *testing.T, a activations, x []float32, exact, finite bool) {
	t.Helper()
	integers := a.integersOf(0)
	scales, sums := a.paramsOf(0)
	for g := range a.groups {
		if !finite {
			if scales[g] == scales[g] || sums[g] == sums[g] {
				t.Errorf("scale %v and sum %v of what is not finite, want NaN", scales[g], sums[g])
			}
			continue
		}
		var largest float64
		sum, group := 0.0, x[g*groupSize:][:groupSize]
		for _, v := range group {
			largest = max(largest, math.Abs(float64(v)))
		}
		bound := largest / (1 << 15)
		if exact {
			bound = 0
		}
		for i, v := range group {
			made := float64(integers[g*groupSize+i]) * float64(scales[g])
			sum += made
			if d := math.Abs(made - float64(v)); d > bound {
				t.Fatalf("column %d: %v became %v, want within %.3g", g*groupSize+i, v, made, bound)
			}
		}
		if float32(sum) != sums[g] {
			t.Errorf("sum of group %d is %v, want %v", g, sums[g], float32(sum))
		}
	}
	for g := a.groups; g < len(scales); g++ {
		if scales[g] != 0 || sums[g] != 0 {
			t.Errorf("scale %v and sum %v of a group that there is not", scales[g], sums[g])
		}
	}
}

// What the integers cost a product, relative to its own size, where activations
// have a few large ones among them, beside which bfloat16 are not exact either.
// Activations of 15 bits cost 6.6e-5, rounding to bfloat16 1.8e-3.
func TestIntegerProductError(t *testing.T) {
	for _, tt := range []struct {
		name  string
		round Rounding
		most  float64
	}{{"bfloat16", BF16, 3e-5}, {"float32", F32, 6.6e-5}} {
		t.Run(tt.name, func(t *testing.T) { testProductError(t, tt.round, tt.most) })
	}
}

func testProductError(t *testing.T, round Rounding, most float64) {
	const in, out = 2048, 512
	r := rand.New(rand.NewPCG(1, 2))
	m := benchMatrix(out, in, 4)
	for i := range m.Codes {
		m.Codes[i] = byte(r.Uint32())
	}
	for i := 0; i < len(m.Scales); i += 2 {
		scale := float32(0.5+r.Float64()) / 300
		m.Scales[i], m.Scales[i+1] = bf16Bytes(scale)
		m.Biases[i], m.Biases[i+1] = bf16Bytes(-7.5 * scale)
	}
	x := make([]float32, in)
	for i := range x {
		x[i] = float32(r.NormFloat64())
		if i%200 == 7 {
			x[i] *= 8
		}
	}
	round.values(x)
	want, row := make([]float64, out), make([]float32, in)
	for n := range want {
		m.dequantise(row, n, 0)
		for i, v := range row {
			want[n] += float64(v) * float64(x[i])
		}
	}
	forIntegerKernels(t, func(t *testing.T, k *kernels) {
		for name, product := range map[string]func(y []float32){
			"matrix-vector": func(y []float32) { integerMatVec(k, F32, y, m, x) },
			"matrix-matrix": func(y []float32) { integerMatMul(k, F32, y, m, x, 1) },
		} {
			y := make([]float32, out)
			product(y)
			var diff, norm float64
			for n, w := range want {
				diff += (float64(y[n]) - w) * (float64(y[n]) - w)
				norm += w * w
			}
			if e := math.Sqrt(diff / norm); !(e < most) {
				t.Errorf("%s: relative error %.2g, want less than %.2g", name, e, most)
			} else {
				t.Logf("%s: relative error %.2g", name, e)
			}
		}
	})
}

func bf16Bytes(x float32) (low, high byte) {
	b := tensor.ToBF16(x)
	return byte(b), byte(b >> 8)
}
