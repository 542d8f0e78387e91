package metal_test

import (
	"os"
	"path/filepath"
	"testing"

	"calla/core/backend"
	"calla/core/conform"
	"calla/metal"
	"calla/metal/emulator"
)

// library returns the path of the emulated device's library, or skips.
func library(t testing.TB) string {
	t.Helper()
	path := filepath.Join("..", "build", "emulator", "libcalla-emulated.so")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no emulated device: run scripts/emulator first")
	}
	return path
}

// emulated makes a device that runs on the emulator in some order.
func emulated(t testing.TB, how emulator.Schedule, o metal.Options) backend.Device {
	t.Helper()
	m, err := emulator.Open(library(t))
	if err != nil {
		t.Fatal(err)
	}
	return metal.New(metal.NewEmulated(m, how), o)
}

var inOrder = emulator.Schedule{Workers: 2}

var subject = conform.Subject{
	New: func(t testing.TB, o conform.Observe) backend.Device {
		return emulated(t, inOrder, metal.Options{Observe: o})
	},
}

func TestOutputs(t *testing.T) { conform.Outputs(t, subject) }

// TestSlice wants the values of real dimensions, where there is a checkpoint.
func TestSlice(t *testing.T) {
	s := subject
	s.Slow = true
	conform.Slice(t, s)
}

func TestEdges(t *testing.T) { conform.Edges(t, subject) }

func TestExact(t *testing.T) {
	s := subject
	s.Variants = map[string]func(testing.TB) backend.Device{
		"by lot": func(t testing.TB) backend.Device {
			return emulated(t, emulator.Schedule{Order: 7, Workers: 2}, metal.Options{})
		},
	}
	conform.Exact(t, s)
}
