package cpu_test

import (
	"fmt"
	"testing"

	"calla/core/backend"
	"calla/core/conform"
	"calla/core/cpu"
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
