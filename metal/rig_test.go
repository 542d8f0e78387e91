package metal

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"calla/core/cpu"
	"calla/core/tensor"
	"calla/metal/emulator"
)

// built returns the path of what scripts/emulator makes, or skips.
func built(t testing.TB, name string) string {
	t.Helper()
	path := filepath.Join("..", "build", "emulator", name)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("no %s: run scripts/emulator --tests first", name)
	}
	return path
}

func openLibrary(t testing.TB) emulator.Machine {
	t.Helper()
	m, err := emulator.Open(built(t, "libcalla-emulated.so"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func startRunner(t testing.TB, name string) emulator.Machine {
	t.Helper()
	m, err := emulator.Start(built(t, name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// size says in how many ways a case can afford to run.
type size int

const (
	small  size = iota // under the sanitizers too
	medium             // in every order
	large              // by lot alone
	huge               // ascending alone, in which lanes meet least
)

// sized returns the size of a case: small, or large where its work is.
func sized(isSmall, isLarge bool) size {
	switch {
	case isLarge:
		return large
	case isSmall:
		return small
	}
	return medium
}

// everyOrder runs a test with lanes, threadgroups and free dispatches in
// ascending order, in descending order and by lot, as its size allows.
func everyOrder(t *testing.T, s size, test func(t *testing.T, r *rig)) {
	if onGPU != nil {
		t.Run("GPU", func(t *testing.T) { test(t, &rig{t: t, driver: onGPU(t, s), source: newSource(1)}) })
		return
	}
	orders := []uint32{0, 1, 5}
	switch s {
	case large:
		orders = []uint32{5}
	case huge:
		orders = []uint32{0}
	}
	for _, order := range orders {
		t.Run(fmt.Sprintf("order %d", order), func(t *testing.T) {
			test(t, newRig(t, openLibrary(t), emulator.Schedule{Order: order, Workers: 2}))
		})
	}
	if s != small {
		return
	}
	for _, name := range []string{"runner-asan", "runner-tsan"} {
		t.Run(name, func(t *testing.T) {
			if testing.Short() {
				t.Skip("slow")
			}
			test(t, newRig(t, startRunner(t, name), emulator.Schedule{Order: 3}))
		})
	}
}

// onGPU, where there is one, makes the driver of a real GPU, on which cases then
// run in place of the emulated device.
var onGPU func(t testing.TB, s size) Driver

// rig brings operands to a device and results back.
type rig struct {
	t      *testing.T
	driver Driver
	enc    Encoder
	source operands
}

func newRig(t *testing.T, m emulator.Machine, how emulator.Schedule) *rig {
	return &rig{t: t, driver: NewEmulated(m, how), source: newSource(1)}
}

// sanitised reports whether a sanitizer slows the device down.
func (r *rig) sanitised() bool {
	d, ok := r.driver.(*Emulated)
	if !ok {
		return false
	}
	_, ok = d.machine.(*emulator.Runner)
	return ok
}

// buffer returns n bytes that are no number in any format.
func (r *rig) buffer(n int) Binding {
	r.t.Helper()
	b, err := r.driver.NewBuffer("b", int64(n))
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { r.driver.Free(b) })
	return b.at(0)
}

func (r *rig) bf16s(values []float32) Binding {
	b := r.buffer(2 * len(values))
	pack16(b, values)
	return b
}

func pack16(b Binding, values []float32) {
	for i, v := range values {
		binary.LittleEndian.PutUint16(b.Buffer.Bytes[b.Offset+int64(2*i):], tensor.ToBF16(v))
	}
}

func (r *rig) f32s(values []float32) Binding {
	b := r.buffer(4 * len(values))
	for i, v := range values {
		putFloat(b.Buffer.Bytes[4*i:], v)
	}
	return b
}

func (r *rig) u32s(values ...uint32) Binding {
	b := r.buffer(4 * len(values))
	for i, v := range values {
		binary.LittleEndian.PutUint32(b.Buffer.Bytes[4*i:], v)
	}
	return b
}

// matrices lays matrices out one below the other, rows in turn where they are
// gate and up.
func (r *rig) matrices(inTurn bool, list ...cpu.Matrix) Matrix {
	m := Matrix{Columns: list[0].In, Bits: list[0].Bits}
	var rows []rowBytes
	for _, x := range list {
		for n := range x.Out {
			rows = append(rows, rowOf(x, n))
			if inTurn {
				rows = append(rows, rowOf(list[1], n))
			}
		}
		if inTurn {
			break
		}
		for m.Rows = len(rows); len(rows)%tileRows != 0; {
			rows = append(rows, rowBytes{})
		}
	}
	if inTurn {
		m.Rows = len(rows)
	}
	size := tileBytes(m.Columns, m.Bits)
	m.At = r.buffer(len(rows) / tileRows * size)
	for i := 0; i < len(rows); i += tileRows {
		packTile(m.At.Buffer.Bytes[i/tileRows*size:], [tileRows]rowBytes(rows[i:]), m.Columns, m.Bits)
	}
	return m
}

func (r *rig) matrix(m cpu.Matrix) Matrix { return r.matrices(false, m) }

func rowOf(m cpu.Matrix, n int) rowBytes {
	codes, params := m.In*m.Bits/8, m.In/groupColumns*2
	return rowBytes{m.Codes[n*codes:][:codes], m.Scales[n*params:][:params], m.Biases[n*params:][:params]}
}

// run runs what was encoded.
func (r *rig) run() {
	r.t.Helper()
	c, err := r.driver.Commit(r.enc.List())
	r.enc.Reset()
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func read16(b Binding, n int) []float32 { return widen(b.Buffer.Bytes[b.Offset:][:2*n]) }

func read32(b Binding, n int) []float32 {
	return append([]float32(nil), floats(b.Buffer.Bytes[b.Offset:][:4*n])...)
}

// operands makes random operands that are the same in every run.
type operands struct{ *rand.Rand }

func newSource(seed ...int) operands {
	s := uint64(29)
	for _, v := range seed {
		s = s*31 + uint64(v)
	}
	return operands{rand.New(rand.NewPCG(s, 2))}
}

// normal returns n values of the spread, rounded to bfloat16.
func (s operands) normal(n int, spread float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = tensor.RoundBF16(float32(spread * s.NormFloat64()))
	}
	return v
}

// around returns n values near a centre, rounded to bfloat16.
func (s operands) around(n int, centre, spread float64) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = tensor.RoundBF16(float32(centre + spread*s.NormFloat64()))
	}
	return v
}

// matrix returns a random matrix whose products with values of spread 1 have
// spread 1; half of its scales are negative.
func (s operands) matrix(out, in, bits int) cpu.Matrix {
	m := cpu.Matrix{
		Codes: make([]byte, out*in*bits/8), Scales: make([]byte, out*in/groupColumns*2), Biases: make([]byte, out*in/groupColumns*2),
		Out: out, In: in, Bits: bits,
	}
	for i := range m.Codes {
		m.Codes[i] = byte(s.Uint32())
	}
	levels := float64(int(1)<<bits - 1)
	spread := math.Sqrt(12/float64(in)) / levels
	for i := 0; i < len(m.Scales); i += 2 {
		scale := spread * (0.5 + s.Float64())
		if s.IntN(2) == 0 {
			scale = -scale
		}
		binary.LittleEndian.PutUint16(m.Scales[i:], tensor.ToBF16(float32(scale)))
		binary.LittleEndian.PutUint16(m.Biases[i:], tensor.ToBF16(float32(-scale*levels/2*(0.9+0.2*s.Float64()))))
	}
	return m
}

// within compares with the plain twin: each value within roundings of itself to
// bfloat16, and eps of the largest. A sum in another order may round the other
// way; where such a value goes into further sums, eps says how much comes out.
func within(t *testing.T, what string, got, want []float32, roundings, eps float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	largest := 0.0
	for _, w := range want {
		largest = max(largest, math.Abs(float64(w)))
	}
	for i, w := range want {
		limit := roundings*math.Abs(float64(w))/128 + eps*largest
		// Negated, so that not-a-number fails.
		if d := math.Abs(float64(got[i]) - float64(w)); !(d <= limit) {
			t.Errorf("%s: value %d is %v, want %v within %.3g", what, i, got[i], w, limit)
			return
		}
	}
}
