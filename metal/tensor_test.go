package metal

import (
	"testing"

	"calla/metal/emulator"
)

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
