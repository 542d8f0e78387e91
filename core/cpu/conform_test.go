package cpu_test

import (
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
