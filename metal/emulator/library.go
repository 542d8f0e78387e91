//go:build darwin || freebsd || linux

package emulator

import (
	"bytes"
	"fmt"
	"path/filepath"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

const slots = 31

// launch mirrors msl_launch in runtime/rt.h.
type launch struct {
	kernel, barrier uint32
	groups, threads [3]uint32
	shared, _       uint32
	constants       [4]uint32
	buf             [slots]unsafe.Pointer
	len             [slots]uint64
}

// run mirrors msl_run in runtime/rt.h.
type run struct {
	workers, order, failed uint32
	message                [1020]byte
}

// Library is a shared library of kernels.
type Library struct {
	signatures
	handle uintptr

	alloc func(size uintptr) unsafe.Pointer
	free  func(unsafe.Pointer)
	run   func(list *launch, n uint32, r *run) int32
}

var _ Machine = (*Library)(nil)

// Open loads a library that scripts/emulator has built.
func Open(path string) (Machine, error) {
	// Of a name without a folder the loader looks elsewhere.
	path, err := filepath.Abs(path)
	if err == nil {
		err = intact(path)
	}
	if err != nil {
		return nil, fmt.Errorf("emulator: %w; scripts/emulator builds the library", err)
	}
	handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("emulator: load %s: %w", path, err)
	}
	l := &Library{handle: handle, signatures: signatures{}}
	var count func() uint32
	var name func(uint32) string
	var constant func(kernel, index uint32) string
	for symbol, f := range map[string]any{
		"msl_kernel_count": &count, "msl_kernel_name": &name, "msl_kernel_constant": &constant,
		"msl_alloc": &l.alloc, "msl_free": &l.free, "msl_run_list": &l.run,
	} {
		address, err := purego.Dlsym(handle, symbol)
		if err != nil {
			return nil, fmt.Errorf("emulator: %s is no library of kernels: %w", path, err)
		}
		purego.RegisterFunc(f, address)
	}
	for i := range count() {
		s := signature{index: i}
		for c := range s.constants {
			s.constants[c] = constant(i, uint32(c))
		}
		if err := l.add(name(i), s); err != nil {
			return nil, fmt.Errorf("%w in %s", err, path)
		}
	}
	return l, nil
}

// Alloc implements Machine.
func (l *Library) Alloc(size int) (*Buffer, error) {
	p := l.alloc(uintptr(size))
	if p == nil {
		return nil, fmt.Errorf("emulator: no memory for a buffer of %d bytes", size)
	}
	return &Buffer{Bytes: unsafe.Slice((*byte)(p), size)}, nil
}

// Free implements Machine.
func (l *Library) Free(b *Buffer) {
	if b.Bytes != nil {
		l.free(unsafe.Pointer(unsafe.SliceData(b.Bytes)))
		b.Bytes = nil
	}
}

// Run implements Machine.
func (l *Library) Run(launches []Launch, how Schedule) error {
	if len(launches) == 0 {
		return nil
	}
	if err := l.check(launches); err != nil {
		return err
	}
	var pin runtime.Pinner
	defer pin.Unpin()
	list := make([]launch, len(launches))
	for i, d := range launches {
		list[i] = launch{
			kernel: l.signatures[d.Kernel].index, constants: d.Constants,
			groups: d.Groups, threads: d.Threads, shared: d.Shared,
		}
		if d.Barrier {
			list[i].barrier = 1
		}
		for _, b := range d.Bound {
			p, n := b.address()
			if b.Buffer == nil {
				pin.Pin(p)
			}
			list[i].buf[b.Slot], list[i].len[b.Slot] = p, n
		}
	}
	r := &run{workers: uint32(how.Workers), order: how.Order}
	if l.run(&list[0], uint32(len(list)), r) == 0 {
		return nil
	}
	message, _, _ := bytes.Cut(r.message[:], []byte{0})
	return &Fault{int(r.failed), launches[r.failed].Kernel, string(message)}
}

// Close implements Machine.
func (l *Library) Close() error { return purego.Dlclose(l.handle) }
