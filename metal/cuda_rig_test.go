//go:build linux

package metal

import (
	"fmt"
	"os"
	"sync"
	"testing"

	"calla/core/backend"
)

// Tests on an NVIDIA GPU run where CALLA_CUDA names the folder of kernels that
// scripts/emulator --cuda makes; scripts/cuda runs them all.

var gpu = sync.OnceValues(func() (*CUDA, error) { return OpenCUDA(os.Getenv("CALLA_CUDA")) })

// openCUDA opens the GPU once for all tests, or skips.
func openCUDA(t testing.TB) *CUDA {
	t.Helper()
	if os.Getenv("CALLA_CUDA") == "" {
		t.Skip("CALLA_CUDA names no kernels for an NVIDIA GPU")
	}
	d, err := gpu()
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// lent is the GPU for one test, which does not close it.
type lent struct{ *CUDA }

func (lent) Close() error { return nil }

// CUDADevice makes a device of the GPU, for tests outside the package.
func CUDADevice(t testing.TB, o Options) backend.Device { return New(lent{openCUDA(t)}, o) }

// mirrored keeps all buffers in the GPU's own memory and a copy of each for the
// processor, which it brings there before a list and back after it.
type mirrored struct {
	*CUDA
	mirrors map[*Buffer]*Buffer // what the test has: what the GPU has
}

func newMirrored(d *CUDA) *mirrored { return &mirrored{d, map[*Buffer]*Buffer{}} }

func (d *mirrored) Close() error { return nil }

func (d *mirrored) NewBuffer(name string, bytes int64) (*Buffer, error) {
	far, err := d.NewPrivate(name, bytes)
	if err != nil {
		return nil, err
	}
	near := &Buffer{Name: name, Size: bytes, Bytes: make([]byte, bytes), Native: far.Native}
	for i := range near.Bytes {
		near.Bytes[i] = 0xff
	}
	d.mirrors[near] = far
	return near, nil
}

func (d *mirrored) Free(b *Buffer) {
	d.CUDA.Free(d.mirrors[b])
	delete(d.mirrors, b)
}

func (d *mirrored) Commit(l *List) (Completion, error) {
	var kernels []Kernel
	for _, x := range l.Dispatches {
		kernels = append(kernels, x.Kernel)
	}
	if err := d.Prepare(kernels); err != nil {
		return nil, err
	}
	touched := map[*Buffer]bool{}
	for _, x := range l.Dispatches {
		for _, b := range x.Buffers {
			touched[b.Buffer] = true
		}
	}
	for b := range touched {
		if err := d.Write(b.at(0), b.Bytes); err != nil {
			return nil, err
		}
	}
	c, err := d.CUDA.Commit(l)
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		return nil, err
	}
	for b := range touched {
		if err := d.Read(b.Bytes, b.at(0)); err != nil {
			return nil, fmt.Errorf("buffer %s: %w", b.Name, err)
		}
	}
	return done{}, nil
}

// CALLA_CUDA_SMALL leaves out what a checker, a hundred times slower, has no time
// for.
func init() {
	if os.Getenv("CALLA_CUDA") == "" {
		return
	}
	onGPU = func(t testing.TB, s size) Driver {
		if s != small && os.Getenv("CALLA_CUDA_SMALL") != "" {
			t.Skip("a large one")
		}
		return newMirrored(openCUDA(t))
	}
}
