package cpu

import (
	"fmt"
	"testing"

	"calla/core/backend"
	"calla/core/conform"
	"calla/core/tensor"
)

// subject is a device that runs the kernels k.
func subject(k Kernels) conform.Subject {
	return conform.Subject{
		New: func(_ testing.TB, o conform.Observe) backend.Device {
			return New(Options{Observe: o, Kernels: k})
		},
		Precise: func(_ testing.TB, o conform.Observe) backend.Device {
			return New(Options{Observe: o, Kernels: k, Rounding: F32})
		},
	}
}

func TestGolden(t *testing.T) {
	forEveryKernels(t, func(t *testing.T, k Kernels) { conform.Golden(t, subject(k)) })
}

func TestSlice(t *testing.T) {
	forEveryKernels(t, func(t *testing.T, k Kernels) { conform.Slice(t, subject(k)) })
}

func TestExact(t *testing.T) {
	forEveryKernels(t, func(t *testing.T, k Kernels) {
		s := subject(k)
		s.Variants = map[string]func(testing.TB) backend.Device{}
		for _, threads := range []int{1, 3} {
			s.Variants[fmt.Sprintf("%d threads", threads)] = func(testing.TB) backend.Device {
				return New(Options{Threads: threads, Kernels: k})
			}
		}
		if k == AMX { // whose integers and sums are those of VNNI
			s.Variants["AVX-512"] = func(testing.TB) backend.Device { return New(Options{Kernels: AVX512}) }
		}
		conform.Exact(t, s)
	})
}

func TestEdges(t *testing.T) {
	forEveryKernels(t, func(t *testing.T, k Kernels) { conform.Edges(t, subject(k)) })
}

func TestPhases(t *testing.T) {
	forEveryKernels(t, func(t *testing.T, k Kernels) { conform.Phases(t, subject(k)) })
}

// Logits rounded to bfloat16 would tie: they are float32 also where everything
// before them is rounded.
func TestLogitsAreNotRounded(t *testing.T) {
	forEveryKernels(t, func(t *testing.T, k Kernels) {
		m := conform.Load(t, New(Options{Kernels: k}), conform.Tiny(t))
		s, err := m.NewState(8)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		step, err := m.Prefill(s, []int32{1, 2}, []int{0}, true)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range step.Logits() {
			if v != tensor.RoundBF16(v) {
				return
			}
		}
		t.Error("every logit is a bfloat16")
	})
}
