//go:build linux

package cuda

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// status is what every function of the driver returns; 0 is success.
type status int32

// api is the driver's functions, each a field named after its symbol.
type api struct {
	cuInit               func(flags uint32) status
	cuDriverGetVersion   func(version *int32) status
	cuGetErrorName       func(s status, name **byte) status
	cuDeviceGet          func(device *int32, ordinal int32) status
	cuDeviceGetName      func(name *byte, n int32, device int32) status
	cuDeviceGetAttribute func(value *int32, attribute, device int32) status
	cuPrimaryCtxRetain   func(context *uintptr, device int32) status
	cuPrimaryCtxRelease  func(device int32) status
	cuCtxSetCurrent      func(context uintptr) status
	cuCtxSynchronize     func() status
	cuMemGetInfo         func(free, total *uint64) status
	cuMemAlloc           func(p *Pointer, bytes uint64) status
	cuMemFree            func(p Pointer) status
	cuMemHostAlloc       func(p *unsafe.Pointer, bytes uint64, flags uint32) status
	cuMemHostGetPointer  func(p *Pointer, host unsafe.Pointer, flags uint32) status
	cuMemFreeHost        func(host unsafe.Pointer) status
	cuMemcpyHtoD         func(to Pointer, from unsafe.Pointer, bytes uint64) status
	cuMemcpyDtoH         func(to unsafe.Pointer, from Pointer, bytes uint64) status
	cuMemcpyDtoDAsync    func(to, from Pointer, bytes uint64, stream uintptr) status
	cuMemsetD8Async      func(to Pointer, value byte, bytes uint64, stream uintptr) status
	cuModuleLoadDataEx   func(module *uintptr, image *byte, n uint32, options *int32, values *uintptr) status
	cuModuleUnload       func(module uintptr) status
	cuModuleGetFunction  func(function *uintptr, module uintptr, name string) status
	cuFuncGetAttribute   func(value *int32, attribute int32, function uintptr) status
	cuEventCreate        func(event *uintptr, flags uint32) status
	cuEventRecord        func(event, stream uintptr) status
	cuEventSynchronize   func(event uintptr) status
	cuEventElapsedTime   func(ms *float32, from, to uintptr) status
	cuEventDestroy       func(event uintptr) status
	cuStreamCreate       func(stream *uintptr, flags uint32) status
	cuStreamDestroy      func(stream uintptr) status
	cuStreamBeginCapture func(stream uintptr, mode int32) status
	cuStreamEndCapture   func(stream uintptr, graph *uintptr) status
	cuGraphInstantiate   func(exec *uintptr, graph uintptr, flags uint64) status
	cuGraphLaunch        func(exec, stream uintptr) status
	cuGraphExecDestroy   func(exec uintptr) status
	cuGraphDestroy       func(graph uintptr) status

	// launchKernel is called once a dispatch, by its address.
	launchKernel uintptr
}

// load finds a driver's library and its functions.
func load(library string) (*api, error) {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		return nil, fmt.Errorf("cuda: no NVIDIA driver on this machine: %w", err)
	}
	a := &api{}
	for symbol, f := range a.symbols() {
		address, err := purego.Dlsym(handle, symbol)
		if err != nil {
			return nil, fmt.Errorf("cuda: %s is too old: %w", library, err)
		}
		purego.RegisterFunc(f, address)
	}
	if a.launchKernel, err = purego.Dlsym(handle, "cuLaunchKernel"); err != nil {
		return nil, fmt.Errorf("cuda: %s is too old: %w", library, err)
	}
	return a, nil
}

// symbols are the names of the functions in the library, most of them with the
// version of their signature.
func (a *api) symbols() map[string]any {
	return map[string]any{
		"cuInit": &a.cuInit, "cuGetErrorName": &a.cuGetErrorName,
		"cuDeviceGet": &a.cuDeviceGet, "cuDeviceGetName": &a.cuDeviceGetName, "cuDeviceGetAttribute": &a.cuDeviceGetAttribute,
		"cuDevicePrimaryCtxRetain": &a.cuPrimaryCtxRetain, "cuDevicePrimaryCtxRelease_v2": &a.cuPrimaryCtxRelease,
		"cuCtxSetCurrent": &a.cuCtxSetCurrent, "cuMemGetInfo_v2": &a.cuMemGetInfo,
		"cuMemAlloc_v2": &a.cuMemAlloc, "cuMemFree_v2": &a.cuMemFree, "cuMemHostAlloc": &a.cuMemHostAlloc,
		"cuMemHostGetDevicePointer_v2": &a.cuMemHostGetPointer, "cuMemFreeHost": &a.cuMemFreeHost,
		"cuMemcpyHtoD_v2": &a.cuMemcpyHtoD, "cuMemcpyDtoH_v2": &a.cuMemcpyDtoH,
		"cuMemcpyDtoDAsync_v2": &a.cuMemcpyDtoDAsync, "cuMemsetD8Async": &a.cuMemsetD8Async,
		"cuModuleLoadDataEx": &a.cuModuleLoadDataEx, "cuModuleUnload": &a.cuModuleUnload,
		"cuModuleGetFunction": &a.cuModuleGetFunction, "cuFuncGetAttribute": &a.cuFuncGetAttribute,
		"cuEventCreate": &a.cuEventCreate, "cuEventRecord": &a.cuEventRecord, "cuEventSynchronize": &a.cuEventSynchronize,
		"cuEventElapsedTime": &a.cuEventElapsedTime, "cuEventDestroy_v2": &a.cuEventDestroy,
		"cuStreamCreate": &a.cuStreamCreate, "cuStreamDestroy_v2": &a.cuStreamDestroy,
		"cuStreamBeginCapture_v2": &a.cuStreamBeginCapture, "cuStreamEndCapture": &a.cuStreamEndCapture,
		"cuGraphInstantiateWithFlags": &a.cuGraphInstantiate, "cuGraphLaunch": &a.cuGraphLaunch,
		"cuGraphExecDestroy": &a.cuGraphExecDestroy, "cuGraphDestroy": &a.cuGraphDestroy,
	}
}
