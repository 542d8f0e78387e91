//go:build darwin || freebsd || linux

package emulator

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Traced is a library that counts the bytes kernels load and store, and their
// arithmetic.
type Traced struct {
	*Library
	watch  func(unsafe.Pointer, uintptr)
	counts func(unsafe.Pointer, *[4]uint64)
	forget func()
	flops  func() uint64
}

// Traffic is bytes of a buffer that kernels touched: each once, and as often as
// a simdgroup touched it.
type Traffic struct{ Loaded, Loads, Stored, Stores uint64 }

// OpenTraced loads a library that scripts/emulator --tests has built. Lists must
// run with one worker.
func OpenTraced(path string) (*Traced, error) {
	l, err := Open(path)
	if err != nil {
		return nil, err
	}
	t := &Traced{Library: l.(*Library)}
	for symbol, f := range map[string]any{
		"msl_trace_watch": &t.watch, "msl_trace_counts": &t.counts, "msl_trace_forget": &t.forget,
		"msl_trace_flops": &t.flops,
	} {
		address, err := purego.Dlsym(t.handle, symbol)
		if err != nil {
			return nil, fmt.Errorf("emulator: %s counts nothing: %w", path, err)
		}
		purego.RegisterFunc(f, address)
	}
	return t, nil
}

// Flops returns how many floating-point operations kernels did while f ran:
// additions, multiplications and divisions, two for a multiply-add. The simdgroup
// operations that the machine does for all lanes at once count once.
func (t *Traced) Flops(f func()) uint64 {
	before := t.flops()
	f()
	return t.flops() - before
}

// Watch counts what is touched of a buffer from here on.
func (t *Traced) Watch(b *Buffer) {
	t.watch(unsafe.Pointer(unsafe.SliceData(b.Bytes)), uintptr(len(b.Bytes)))
}

// Traffic returns what was touched of a watched buffer.
func (t *Traced) Traffic(b *Buffer) Traffic {
	var n [4]uint64
	t.counts(unsafe.Pointer(unsafe.SliceData(b.Bytes)), &n)
	return Traffic{n[0], n[1], n[2], n[3]}
}

// Forget ends the watch of all buffers.
func (t *Traced) Forget() { t.forget() }
