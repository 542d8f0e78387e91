//go:build linux

package metal_test

import (
	"testing"

	"calla/core/backend"
	"calla/core/conform"
	"calla/metal"
)

// TestCUDA holds the GPU to what every backend must show. CALLA_SLICE adds four
// layers at real dimensions (core/conform/testdata/slice/README.md).
func TestCUDA(t *testing.T) {
	s := conform.Subject{New: func(t testing.TB, o conform.Observe) backend.Device {
		return metal.CUDADevice(t, metal.Options{Observe: o})
	}}
	t.Run("outputs", func(t *testing.T) { conform.Outputs(t, s) })
	t.Run("edges", func(t *testing.T) { conform.Edges(t, s) })
	t.Run("exact", func(t *testing.T) { conform.Exact(t, s) })
	t.Run("slice", func(t *testing.T) { conform.Slice(t, s) })
	t.Run("demo", func(t *testing.T) { testDemo(t, metal.CUDADevice(t, metal.Options{}), 10_000) })
}
