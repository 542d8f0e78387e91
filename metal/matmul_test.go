package metal

import (
	"fmt"
	"testing"

	"calla/core/conform"
	"calla/core/cpu"
	"calla/metal/emulator"
)

// layouts are the libraries that a test of matrix units runs on: one spreads a
// cooperative tensor over the lanes as hardware was seen to, one as none does.
var layouts = []string{"libcalla-emulated.so", "libcalla-tensor.so"}

// onMatrixUnits runs a test of prefill's products on matrix units, under both
// layouts of lanes, in one of three orders.
func onMatrixUnits(t *testing.T, order int, test func(t *testing.T, r *rig)) {
	for _, name := range layouts {
		t.Run("matrix units, "+name, func(t *testing.T) {
			m, err := emulator.Open(built(t, name))
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, m, emulator.Schedule{Order: uint32(order % 3), Workers: 2})
			r.enc.tensor = true
			test(t, r)
		})
	}
}

// TestMatmul compares products of a prefill, and what is made of them at once,
// with the plain twin.
func TestMatmul(t *testing.T) {
	type size struct{ rows, outputs, columns int }
	sizes := []size{{8, 64, 2048}, {5, 128, 4096}, {2, 2048, 512}}
	shapes := []size{{0, 4, 64}, {0, 64, 128}, {0, 68, 192}, {0, 128, 64}, {0, 60, 320}, {0, 64, 512}}
	for i, rows := range conform.Ragged {
		s := shapes[i%len(shapes)]
		sizes = append(sizes, size{rows, s.outputs, s.columns})
	}
	for _, s := range sizes {
		t.Run(fmt.Sprintf("%d rows, %d×%d", s.rows, s.outputs, s.columns), func(t *testing.T) {
			test := func(t *testing.T, r *rig) { testMatmul(t, r, s.rows, s.outputs, s.columns) }
			everyOrder(t, sized(s.rows == 1, s.rows > 4), test)
			onMatrixUnits(t, s.rows, test)
		})
	}
}

func testMatmul(t *testing.T, r *rig, rows, outputs, columns int) {
	w, x := r.source.matrix(outputs, columns, 4), r.source.normal(rows*columns, 1)
	wide := r.source.matrix(outputs, columns, 8)
	h := r.source.normal(rows*outputs, 1)
	m, in := r.matrix(w), r.bf16s(x)
	y, on, half, logits := r.buffer(2*rows*outputs), r.bf16s(h), r.buffer(rows*outputs), r.buffer(4*rows*outputs)
	r.enc.Matmul(in, m, y, rows)
	r.enc.MatmulAdd(in, m, on, rows)
	r.enc.MatmulSwiGLU(in, m, half, rows)
	r.enc.RouteRowsLogits(in, r.matrix(wide), logits, rows)
	r.run()

	want := make([]float32, rows*outputs)
	cpu.QMatMul(cpu.F32, want, wide, x, rows)
	within(t, "logits", read32(logits, len(want)), want, 0, 1e-5)
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
