package cpu_test

import (
	"fmt"
	"testing"

	"calla/core/backend"
	"calla/core/conform"
	"calla/core/cpu"
	"calla/core/tensor"
)

var subject = conform.Subject{
	New: func(_ testing.TB, o conform.Observe) backend.Device {
		return cpu.New(cpu.Options{Observe: o})
	},
	Precise: func(_ testing.TB, o conform.Observe) backend.Device {
		return cpu.New(cpu.Options{Observe: o, Rounding: cpu.F32})
	},
}

func TestGolden(t *testing.T) { conform.Golden(t, subject) }

func TestSlice(t *testing.T) { conform.Slice(t, subject) }

func TestExact(t *testing.T) {
	s := subject
	s.Variants = map[string]func(testing.TB) backend.Device{}
	for threads := 1; threads <= 4; threads++ {
		s.Variants[fmt.Sprintf("%d threads", threads)] = func(testing.TB) backend.Device {
			return cpu.New(cpu.Options{Threads: threads})
		}
	}
	conform.Exact(t, s)
}

func TestEdges(t *testing.T) { conform.Edges(t, subject) }

func TestPhases(t *testing.T) { conform.Phases(t, subject) }

// Logits rounded to bfloat16 would tie: they are float32 also where everything
// before them is rounded.
func TestLogitsAreNotRounded(t *testing.T) {
	m := conform.Load(t, cpu.New(cpu.Options{}), conform.Tiny(t))
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
}
