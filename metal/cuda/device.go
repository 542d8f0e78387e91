//go:build linux

package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Device is a GPU. Its methods may be called by several goroutines; Launch and
// what must come behind it are one goroutine's.
type Device struct {
	api     *api
	ordinal int32
	context uintptr
	stream  uintptr // the only one; copies are ordered with it
	name    string
	mu      sync.Mutex
	launch  launch // guarded by mu
}

// launch is the memory of a launch's parameters, which the driver reads during
// the call.
type launch struct {
	values   [maxParams]Pointer
	pointers [maxParams]unsafe.Pointer
}

// Flags and attributes of the driver's interface.
const (
	hostMapped          = 2 // cuMemHostAlloc
	eventBlocking       = 1 // cuEventCreate
	attributeMultiprocs = 16
	attributeMajor      = 75
	attributeMinor      = 76
	optionErrorLog      = 5 // cuModuleLoadDataEx
	optionErrorLogBytes = 6
	optionLineInfo      = 12
	functionLocalBytes  = 3 // cuFuncGetAttribute
	functionRegisters   = 4
	captureRelaxed      = 2 // cuStreamBeginCapture
)

// Open starts the first GPU.
func Open() (*Device, error) { return open("libcuda.so.1") }

func open(library string) (*Device, error) {
	a, err := load(library)
	if err != nil {
		return nil, err
	}
	d := &Device{api: a}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := d.check("start", a.cuInit(0)); err != nil {
		return nil, err
	}
	if err := d.check("find a GPU", a.cuDeviceGet(&d.ordinal, 0)); err != nil {
		return nil, err
	}
	if err := d.check("take the GPU", a.cuPrimaryCtxRetain(&d.context, d.ordinal)); err != nil {
		return nil, err
	}
	name := make([]byte, 256)
	s := a.cuCtxSetCurrent(d.context)
	if s == 0 {
		s = a.cuDeviceGetName(&name[0], int32(len(name)), d.ordinal)
	}
	if s == 0 {
		s = a.cuStreamCreate(&d.stream, 0)
	}
	if err := d.check("take the GPU", s); err != nil {
		a.cuPrimaryCtxRelease(d.ordinal)
		return nil, err
	}
	name, _, _ = bytes.Cut(name, []byte{0})
	d.name = string(name)
	return d, nil
}

// Close gives the GPU back. All memory on it is gone.
func (d *Device) Close() error {
	return d.do("give the GPU back", func() status {
		d.api.cuStreamDestroy(d.stream)
		return d.api.cuPrimaryCtxRelease(d.ordinal)
	})
}

// do calls the driver with the device current on this thread.
func (d *Device) do(what string, f func() status) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s := d.api.cuCtxSetCurrent(d.context)
	if s == 0 {
		s = f()
	}
	return d.check(what, s)
}

// check makes an error of a status.
func (d *Device) check(what string, s status) error {
	if s == 0 {
		return nil
	}
	name := fmt.Sprintf("error %d", s)
	var text *byte
	if d.api.cuGetErrorName(s, &text) == 0 && text != nil {
		name = cString(text)
	}
	return fmt.Errorf("cuda: %s: %s", what, name)
}

// cString copies a string that ends with a zero byte.
func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// Name returns the GPU's name, its compute capability and its multiprocessors.
func (d *Device) Name() string {
	var major, minor, processors int32
	d.api.cuDeviceGetAttribute(&major, attributeMajor, d.ordinal)
	d.api.cuDeviceGetAttribute(&minor, attributeMinor, d.ordinal)
	d.api.cuDeviceGetAttribute(&processors, attributeMultiprocs, d.ordinal)
	return fmt.Sprintf("%s (compute %d.%d, %d multiprocessors)", d.name, major, minor, processors)
}

// Memory returns the GPU's free bytes, and all that it has.
func (d *Device) Memory() (free, total int64, err error) {
	var f, t uint64
	err = d.do("ask for memory", func() status { return d.api.cuMemGetInfo(&f, &t) })
	return int64(f), int64(t), err
}

// Launch puts a kernel on the queue. values are the argument struct; pointers
// follow it.
func (d *Device) Launch(f *Function, grid [3]uint32, threads, shared uint32, values []byte, pointers []Pointer) error {
	if n := 1 + len(pointers); n != f.params || len(values) == 0 {
		return fmt.Errorf("cuda: %s: %d parameters, want %d", f.name, n, f.params)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := &d.launch
	l.pointers[0] = unsafe.Pointer(&values[0])
	for i, p := range pointers {
		l.values[i] = p
		l.pointers[i+1] = unsafe.Pointer(&l.values[i])
	}
	var pin runtime.Pinner
	pin.Pin(&values[0])
	defer pin.Unpin()
	return d.do(f.name, func() status {
		s, _, _ := purego.SyscallN(d.api.launchKernel, f.handle,
			uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]), uintptr(threads), 1, 1,
			uintptr(shared), d.stream, uintptr(unsafe.Pointer(&l.pointers[0])), 0)
		return status(s)
	})
}
