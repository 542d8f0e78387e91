//go:build cgo

package apple

/*
#cgo CFLAGS: -x objective-c -fobjc-arc -O2
// A program without a window has a default device only with CoreGraphics.
#cgo LDFLAGS: -framework Metal -framework Foundation -framework CoreGraphics
#include <stdlib.h>
#include "shim_darwin.h"
*/
import "C"

import (
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"

	bridge "github.com/progrium/darwinkit/macos/metal"
	"github.com/progrium/darwinkit/objc"
)

// shim is Metal by way of shim_darwin.m.
type shim struct{}

var _ gpu = shim{}

// raised takes what a call of the shim left of an error.
func raised(e *C.calla_error) error {
	if e.text == nil {
		return nil
	}
	defer C.free(unsafe.Pointer(e.text))
	return &nativeError{int64(e.code), C.GoString(e.text)}
}

// text is a C string for the length of a call.
func text(s string, call func(*C.char)) {
	c := C.CString(s)
	defer C.free(unsafe.Pointer(c))
	call(c)
}

func (shim) device() (handle, facts, error) {
	var f facts
	var e C.calla_error
	h := handle(C.calla_device((*C.calla_facts)(unsafe.Pointer(&f.deviceFacts)), &e))
	if h == 0 {
		return 0, f, raised(&e)
	}
	readProperties(&f)
	f.OS, _ = syscall.Sysctl("kern.osproductversion")
	f.Build, _ = syscall.Sysctl("kern.osversion")
	guest, _ := syscall.SysctlUint32("kern.hv_vmm_present")
	f.Virtual = guest != 0
	return h, f, nil
}

// readProperties reads what a device tells of itself. All are objects or numbers
// of 64 bits: smaller results the bridge would write past their end.
func readProperties(f *facts) {
	runtime.LockOSThread() // to its autorelease pool
	defer runtime.UnlockOSThread()
	objc.WithAutoreleasePool(func() {
		d := bridge.DeviceObject{Object: objc.ObjectFrom(*(*unsafe.Pointer)(unsafe.Pointer(&f.Device)))}
		f.Name = d.Name()
		f.Budget = int64(d.RecommendedMaxWorkingSetSize())
		f.MaxBuffer = int64(d.MaxBufferLength())
		info := objc.Call[objc.Object](objc.GetClass("NSProcessInfo"), objc.Sel("processInfo"))
		f.Memory = int64(objc.Call[uint64](info, objc.Sel("physicalMemory")))
	})
}

func (shim) queue(device handle, most int) handle {
	return handle(C.calla_queue(C.uint64_t(device), C.uint64_t(most)))
}

func (shim) fence(device handle) handle { return handle(C.calla_fence(C.uint64_t(device))) }

func (shim) compile(device handle, source string, language uint32) (h handle, err error) {
	var e C.calla_error
	text(source, func(s *C.char) {
		h = handle(C.calla_compile(C.uint64_t(device), s, C.uint32_t(language), &e))
	})
	return h, raised(&e)
}

func (shim) load(device handle, path string) (h handle, err error) {
	var e C.calla_error
	text(path, func(s *C.char) { h = handle(C.calla_load(C.uint64_t(device), s, &e)) })
	return h, raised(&e)
}

func (shim) functions(library handle) []string {
	names := C.calla_functions(C.uint64_t(library))
	defer C.free(unsafe.Pointer(names))
	return strings.Fields(C.GoString(names))
}

func (shim) archive(device handle, path string) (h handle, err error) {
	var e C.calla_error
	text(path, func(s *C.char) { h = handle(C.calla_archive(C.uint64_t(device), s, &e)) })
	return h, raised(&e)
}

func (shim) save(archive handle, path string) error {
	var e C.calla_error
	text(path, func(s *C.char) { C.calla_save(C.uint64_t(archive), s, &e) })
	return raised(&e)
}

func (shim) pipeline(device handle, function string, spec *pipelineSpec) (h handle, err error) {
	var e C.calla_error
	text(function, func(s *C.char) {
		h = handle(C.calla_pipeline(C.uint64_t(device), s, (*C.calla_pipeline_spec)(unsafe.Pointer(spec)), &e))
	})
	return h, raised(&e)
}

func (shim) buffer(device handle, label string, bytes int64, host bool) (h handle, contents []byte) {
	var p unsafe.Pointer
	text(label, func(s *C.char) {
		h = handle(C.calla_buffer(C.uint64_t(device), s, C.uint64_t(bytes), flag(host), &p))
	})
	if h != 0 && host {
		contents = unsafe.Slice((*byte)(p), bytes)
	}
	return h, contents
}

func (shim) residency(device, queue handle) (handle, error) {
	var e C.calla_error
	h := handle(C.calla_residency(C.uint64_t(device), C.uint64_t(queue), &e))
	return h, raised(&e)
}

func (shim) reside(set, buffer handle, add bool) {
	C.calla_reside(C.uint64_t(set), C.uint64_t(buffer), flag(add))
}

func (shim) wire(set handle, wired bool) { C.calla_wire(C.uint64_t(set), flag(wired)) }

func flag(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (shim) submit(queue, fence handle, b *batch) ([]handle, error) {
	var e C.calla_error
	commands := make([]handle, b.commands)
	n := C.calla_submit(C.uint64_t(queue), C.uint64_t(fence),
		(*C.calla_record)(unsafe.Pointer(unsafe.SliceData(b.records))), C.uint64_t(len(b.records)),
		(*C.calla_binding)(unsafe.Pointer(unsafe.SliceData(b.bindings))),
		unsafe.Pointer(unsafe.SliceData(b.args)), (*C.char)(unsafe.Pointer(unsafe.SliceData(b.labels))),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(commands))), &e)
	return commands[:n], raised(&e)
}

func (shim) transfer(queue, fence handle, ordered bool, moves []move) (handle, error) {
	var e C.calla_error
	h := handle(C.calla_transfer(C.uint64_t(queue), C.uint64_t(fence), flag(ordered),
		(*C.calla_move)(unsafe.Pointer(unsafe.SliceData(moves))), C.uint64_t(len(moves)), &e))
	return h, raised(&e)
}

func (shim) wait(command handle, limit time.Duration) (r result, err error) {
	var e C.calla_error
	C.calla_wait(C.uint64_t(command), C.uint64_t(limit), (*C.calla_result)(unsafe.Pointer(&r)), &e)
	return r, raised(&e)
}

func (shim) release(h handle) { C.calla_release(C.uint64_t(h)) }

func (shim) live() uint64 { return uint64(C.calla_live()) }
