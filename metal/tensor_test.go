package metal

import (
	"fmt"
	"testing"

	"calla/core/cpu"
	"calla/metal/emulator"
)

// TestTensor compares the products on matrix units with the plain twin, under two
// layouts of lanes: one as hardware was seen to have it, one as none has.
func TestTensor(t *testing.T) {
	for _, name := range []string{"libcalla-emulated.so", "libcalla-tensor.so"} {
		t.Run(name, func(t *testing.T) {
			m, err := emulator.Open(built(t, name))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range []struct{ rows, outputs, columns int }{
				{1, 4, 64}, {2, 64, 128}, {31, 68, 192}, {32, 128, 64}, {33, 60, 320}, {65, 64, 512}, {8, 64, 2048},
			} {
				t.Run(fmt.Sprintf("%d rows, %d×%d", s.rows, s.outputs, s.columns), func(t *testing.T) {
					testTensor(t, newRig(t, m, emulator.Schedule{Order: uint32(s.rows % 3), Workers: 2}), s.rows, s.outputs, s.columns)
				})
			}
		})
	}
}

func testTensor(t *testing.T, r *rig, rows, outputs, columns int) {
	w, x := r.source.matrix(outputs, columns, 4), r.source.normal(rows*columns, 1)
	h := r.source.normal(rows*outputs, 1)
	m, in := r.matrix(w), r.bf16s(x)
	y, on, half := r.buffer(2*rows*outputs), r.bf16s(h), r.buffer(rows*outputs)
	r.enc.tensor = true
	r.enc.Matmul(in, m, y, rows)
	r.enc.MatmulAdd(in, m, on, rows)
	r.enc.MatmulSwiGLU(in, m, half, rows)
	r.run()

	want := make([]float32, rows*outputs)
	cpu.QMatMul(cpu.BF16, want, w, x, rows)
	within(t, "y", read16(y, len(want)), want, 1, 1e-6)
	var gate, up []float32
	for i := 0; i < len(want); i += 2 {
		gate, up = append(gate, want[i]), append(up, want[i+1])
	}
	cpu.SwiGLU(cpu.BF16, gate, up)
	within(t, "silu(gate) × up", read16(half, len(gate)), gate, 3, 1e-6)
	cpu.Add(cpu.BF16, h, want)
	within(t, "h", read16(on, len(h)), h, 1, 1.0/128)
}

// TestModelOnMatrixUnits wants the tokens that a device without has.
func TestModelOnMatrixUnits(t *testing.T) {
	tokens := make([]int32, 70)
	for i := range tokens {
		tokens[i] = int32(11 * i % 700)
	}
	logits := func(d *Emulated) []float32 {
		m := tiny(t, d)
		s, err := m.NewState(100)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		step, err := m.Prefill(s, tokens, []int{0, 9}, true)
		if err != nil {
			t.Fatal(err)
		}
		if err := step.Wait(); err != nil {
			t.Fatal(err)
		}
		return append([]float32(nil), step.Logits()...)
	}
	without := logits(NewEmulated(openLibrary(t), emulator.Schedule{Workers: 2}))
	for _, name := range []string{"libcalla-emulated.so", "libcalla-tensor.so"} {
		m, err := emulator.Open(built(t, name))
		if err != nil {
			t.Fatal(err)
		}
		d := NewEmulated(m, emulator.Schedule{Workers: 2})
		d.Units = true
		// Other orders of sums round otherwise here and there, layer by layer.
		within(t, name, logits(d), without, 0, 0.05)
	}
}
