//go:build cgo

package apple

import (
	"strings"
	"testing"

	"calla/core/backend"
	"calla/core/conform"
	"calla/metal"
)

// openMac starts a driver on this Mac's GPU, or skips where it has none to use.
func openMac(t testing.TB, o Options) *Driver {
	t.Helper()
	d, err := Open(o)
	if err != nil {
		t.Skip(err)
	}
	return d
}

// TestMac runs the suites that every backend passes on this Mac's GPU: values of
// mlx-lm, bits that don't depend on how a prompt was cut, calls that are refused.
func TestMac(t *testing.T) {
	s := conform.Subject{New: func(t testing.TB, o conform.Observe) backend.Device {
		return metal.New(openMac(t, Options{Cache: t.TempDir()}), metal.Options{Observe: o})
	}}
	t.Run("outputs", func(t *testing.T) { conform.Outputs(t, s) })
	t.Run("exact", func(t *testing.T) { conform.Exact(t, s) })
	t.Run("edges", func(t *testing.T) { conform.Edges(t, s) })
}

// TestMacSteps follows tokens with two steps under way, in command buffers and
// encoders of every size: the bits are the same, and no object of Metal's is left.
func TestMacSteps(t *testing.T) {
	openMac(t, Options{}).Close()
	before := shim{}.live()
	t.Run("model", func(t *testing.T) {
		d := openMac(t, Options{Cache: t.TempDir()})
		m := tiny(t, d)
		want := mustCall(t, m, 2, 6)
		for name, change := range map[string]func(){
			"again":                   func() {},
			"in many command buffers": func() { d.pace.rate = 0.01 },
			"an encoder each":         func() { d.careful = 1000 },
		} {
			change()
			for range 20 {
				if got := mustCall(t, m, 2, 6); !same(got, want) {
					t.Fatalf("%s: other bits", name)
				}
			}
		}
	})
	if after := (shim{}).live(); after != before {
		t.Errorf("%d objects left, %d before", after, before)
	}
}

// TestMacCompileError is a compile error of the real compiler's, in the form that
// blame reads.
func TestMacCompileError(t *testing.T) {
	d := openMac(t, Options{})
	defer d.Close()
	_, err := d.gpu.compile(d.handles.device, "#line 1 \"embed.metal\"\n#include <metal_stdlib>\n\n\nkernel void x() { y; }\n", plainSources.language)
	if err == nil {
		t.Fatal("it compiles")
	}
	if got := blame("embed.metal", err.Error()); !strings.HasPrefix(got, "embed.metal, line 4") {
		t.Errorf("blame is %q for:\n%v", got, err)
	}
}

// TestMacArchive takes every pipeline of a second start from the archive of the
// first.
func TestMacArchive(t *testing.T) {
	dir := t.TempDir()
	kernels := []metal.Kernel{{Name: "embed"}, {Name: "argmax"}, {Name: "normalise_rows"}}
	for start := range 2 {
		d := openMac(t, Options{Cache: dir})
		if err := d.Prepare(kernels); err != nil {
			t.Fatal(err)
		}
		specs, err := d.specs(kernels)
		if err != nil {
			t.Fatal(err)
		}
		for i, k := range kernels {
			p, archived, err := d.makeOne(k, specs[i])
			d.gpu.release(p.handle)
			if err != nil || archived != (start == 1) {
				t.Errorf("start %d, %v: from the archive %v, %v", start, k, archived, err)
			}
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}
