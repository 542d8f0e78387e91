//go:build linux

package metal

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"calla/metal/cuda"
)

// TestCUDASeeded runs the kernel with a planted fault that CALLA_SEEDED names.
// scripts/cuda does so under a checker, which has to see it.
func TestCUDASeeded(t *testing.T) {
	kernel := os.Getenv("CALLA_SEEDED")
	if kernel == "" {
		t.Skip("CALLA_SEEDED names no kernel")
	}
	d := openCUDA(t)
	b, err := os.ReadFile(filepath.Join(os.Getenv("CALLA_CUDA"), "seeded", "seeded.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := cuda.Parse(string(b))
	if err != nil {
		t.Fatal(err)
	}
	f, err := d.gpu.Load(s, kernel, [4]uint32{})
	if err != nil {
		t.Fatal(err)
	}
	y, err := d.gpu.Alloc(64 * 4)
	if err != nil {
		t.Fatal(err)
	}
	defer d.gpu.Free(y)
	// The only parameter is a pointer.
	at := binary.LittleEndian.AppendUint64(nil, uint64(y))
	if err := d.gpu.Launch(f, [3]uint32{1, 1, 1}, 64, 0, at, nil); err != nil {
		t.Fatal(err)
	}
	if err := d.wait(); err != nil {
		t.Fatal(err)
	}
}
