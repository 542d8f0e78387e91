package cpu

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"calla/core/backend"
	"calla/core/conform"
)

// emulated are the AMX kernels with a matrix unit in Go, for machines without
// one: all but the instructions of AMX itself is then tested everywhere.
var emulated = func() kernels {
	k, integer, unit := amx, *amx.integer, *amx.integer.unit
	for i := range unit.tiles {
		unit.tiles[i] = emulatedTiles(4 * (i + 1))
	}
	integer.unit, k.integer = &unit, &integer
	return k
}()

// How a group lies in a panel, its parameters and a tile of activations.
type (
	unitCodes  [groupSize / 4][unitPanel][4]uint8
	unitParams [2][unitPanel]float32
	unitTile   struct {
		low         [unitRows][groupSize]uint8
		high        [unitRows][groupSize]int8
		scale, sums [unitRows]float32
	}
	unitSums [unitRows][unitPanel]float32
)

func emulatedTiles(rows int) unitKernel {
	return func(sums *float32, _ *int32, x, codes, params *byte, groups, strips, tiles, step int) {
		for tile := range tiles {
			out := (*unitSums)(unsafe.Add(unsafe.Pointer(sums), tile*int(unsafe.Sizeof(unitSums{}))))
			for g := range groups {
				block := (*unitTile)(unsafe.Add(unsafe.Pointer(x), tile*step+g*unitBlock))
				c := (*unitCodes)(unsafe.Add(unsafe.Pointer(codes), g*panelCodes))
				p := (*unitParams)(unsafe.Add(unsafe.Pointer(params), g*int(unsafe.Sizeof(unitParams{}))))
				block.multiply(out, rows, strips*unitRows, c, p)
			}
		}
	}
}

// multiply adds the products of the first rows with the first outputs of a panel.
func (b *unitTile) multiply(sums *unitSums, rows, outputs int, codes *unitCodes, params *unitParams) {
	var x [unitRows][groupSize]int32
	for r := range rows {
		for i := range groupSize {
			x[r][i] = int32(b.high[r][i])<<8 + int32(b.low[r][i])
		}
	}
	for n := range outputs {
		var c [groupSize]int32
		for i := range c {
			c[i] = int32(codes[i/4][n][i%4])
		}
		for r := range rows {
			var dot int32
			for i, v := range &x[r] {
				dot += v * c[i]
			}
			scaled := fma32(params[0][n], float32(dot)*b.scale[r], sums[r][n])
			sums[r][n] = fma32(params[1][n], b.sums[r], scaled)
		}
	}
}

// fma32 returns x y + z, rounded once: the sum in float64 is rounded to odd, so
// that rounding it again does no harm.
func fma32(x, y, z float32) float32 {
	a, b := float64(x)*float64(y), float64(z)
	s := a + b
	back := s - a
	if e := (a - (s - back)) + (b - back); e != 0 && math.Float64bits(s)&1 == 0 {
		if (e > 0) == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return float32(s)
}

// forMatrixUnits runs a test for the real matrix unit and the emulated one.
func forMatrixUnits(t *testing.T, run func(t *testing.T, k *kernels)) {
	t.Run("emulated", func(t *testing.T) {
		if !hasAVX512 {
			t.Skip("what surrounds a matrix unit needs AVX-512")
		}
		run(t, &emulated)
	})
	t.Run("AMX", func(t *testing.T) {
		if !AMX.Available() {
			t.Skip("this processor has no AMX, or the system doesn't lend it")
		}
		run(t, AMX.kernels())
	})
}

// randomMatrix has codes of all values, and scales and biases of both signs.
func randomMatrix(r *rand.Rand, out, in, bits int) Matrix {
	m := benchMatrix(out, in, bits)
	for i := range m.Codes {
		m.Codes[i] = byte(r.Uint32())
	}
	for i := 0; i < len(m.Scales); i += 2 {
		m.Scales[i], m.Scales[i+1] = bf16Bytes(float32(r.NormFloat64()))
		m.Biases[i], m.Biases[i+1] = bf16Bytes(float32(r.NormFloat64()))
	}
	return m
}

// A matrix unit gives the bits of the vector units: the same integers, then the
// same float32 operations in the same order.
func TestMatrixUnitGivesTheSameBits(t *testing.T) {
	for _, tt := range []struct {
		name                string
		out, in, bits, rows int
	}{
		{"one of each", 1, 64, 4, 1},
		{"one row of a tile", 64, 128, 4, 1},
		{"four rows", 64, 128, 4, 4},
		{"one row more than four", 64, 128, 4, 5},
		{"twelve rows", 64, 128, 4, 12},
		{"a row less than a tile", 64, 128, 4, 15},
		{"a whole tile", 64, 128, 4, 16},
		{"one row more than a tile", 64, 128, 4, 17},
		{"many tiles", 64, 128, 4, 100},
		{"a part of a strip", 5, 128, 4, 7},
		{"a strip", 16, 128, 4, 7},
		{"a panel and a part", 100, 128, 4, 18},
		{"three groups", 64, 192, 4, 18},
		{"groups behind the last eight", 64, 64 * 11, 4, 18},
		{"the model's width", 96, 2048, 4, 20},
		{"bytes, one of each", 1, 64, 8, 1},
		{"bytes, three groups", 64, 192, 8, 18},
		{"bytes, the router's width", 80, 2048, 8, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(uint64(tt.in), uint64(tt.rows)))
			w := randomMatrix(r, tt.out, tt.in, tt.bits)
			x := make([]float32, tt.rows*tt.in)
			for i := range x {
				x[i] = float32(r.NormFloat64() * math.Exp2(float64(r.IntN(12))))
			}
			x[0], x[len(x)-1] = -math.MaxInt16*2, math.MaxInt16*2 // the ends of the integers
			forMatrixUnits(t, func(t *testing.T, k *kernels) {
				want, got := make([]float32, tt.rows*tt.out), dirty(tt.rows*tt.out)
				integerMatMul(&avx2, F32, want, w, x, tt.rows)
				integerMatMul(k, F32, got, w, x, tt.rows)
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("row %d, output %d is %v, AVX2 makes %v", i/tt.out, i%tt.out, got[i], want[i])
					}
				}
			})
		})
	}
}

// Rows gathered into tiles are the rows that they came from.
func TestTiledTake(t *testing.T) {
	forMatrixUnits(t, func(t *testing.T, k *kernels) {
		const in, rows = 192, 40
		r := rand.New(rand.NewPCG(1, 1))
		x := make([]float32, rows*in)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		w, all := randomMatrix(r, 64, in, 4), integerBatch(k, x, in)
		chosen := []int32{0, 3, 15, 16, 17, 31, 32, 39, 38, 2, 1, 14, 20, 21, 22, 23, 24, 5}
		some := rowBatch{n: len(chosen), in: in}
		some.tiled = newTiled(dirty(tiledFloats(in, some.n)), in, some.n)
		for i, row := range chosen {
			some.tiled.take(i, all.tiled, int(row))
		}
		s := new(panelScratch)
		s.layOut(new(carver), in, rows)
		want, got := make([]float32, rows*w.Out), make([]float32, some.n*w.Out)
		k.integer.multiply(s, want, w, 0, all, panel{})
		k.integer.multiply(s, got, w, 0, some, panel{})
		for i, row := range chosen {
			for n := range w.Out {
				if g, w := got[i*w.Out+n], want[int(row)*w.Out+n]; g != w {
					t.Fatalf("row %d, taken from %d: output %d is %v, want %v", i, row, n, g, w)
				}
			}
		}
	})
}

// newEmulated makes a device with the emulated matrix unit.
func newEmulated(o Options) *Device {
	d := New(o)
	d.kernels = &emulated
	return d
}

// Whole models on the emulated matrix unit. That rows don't depend on the call
// they come in follows from the test of products above; the real one shows it
// in TestExact.
func TestEmulatedUnit(t *testing.T) {
	if !hasAVX512 {
		t.Skip("what surrounds a matrix unit needs AVX-512")
	}
	s := conform.Subject{New: func(_ testing.TB, o conform.Observe) backend.Device { return newEmulated(Options{Observe: o}) }}
	t.Run("golden", func(t *testing.T) { conform.Golden(t, s) })
	t.Run("phases", func(t *testing.T) { conform.Phases(t, s) })
	t.Run("bits of AVX-512", func(t *testing.T) {
		got := prefilled(t, newEmulated(Options{Threads: 3}))
		for i, want := range prefilled(t, New(Options{Kernels: AVX512})) {
			if got[i] != want {
				t.Fatalf("logit %d is %v, want %v", i, got[i], want)
			}
		}
	})
}

// prefilled returns the logits after prefills of several sizes.
func prefilled(t *testing.T, d *Device) []float32 {
	m := conform.Load(t, d, conform.Tiny(t))
	s, err := m.NewState(256)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var all []float32
	for _, rows := range []int{1, 17, 33} {
		tokens := make([]int32, rows)
		for i := range tokens {
			tokens[i] = int32(i*i*37+rows) % int32(m.Config().Vocab)
		}
		step, err := m.Prefill(s, tokens, []int{s.Len()}, true)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, step.Logits()...)
	}
	return all
}

// Where the system refuses the tiles, the best of what is left runs.
func TestRefusedTiles(t *testing.T) {
	had, permit := hasAMX, permitTiles
	defer func() { hasAMX, permitTiles = had, permit }()
	hasAMX, permitTiles = true, func() bool { return false }
	if AMX.Available() {
		t.Error("AMX is said to be available without leave to use it")
	}
	if k := Fastest.kernels(); k.integer != nil && k.integer.unit != nil {
		t.Error("the fastest kernels use the tiles without leave")
	}
}
