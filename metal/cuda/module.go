//go:build linux

package cuda

import (
	"bytes"
	"fmt"
	"runtime"
	"unsafe"
)

// Function is a kernel that the driver has compiled.
type Function struct {
	name           string
	module, handle uintptr
	params         int
	// Registers is how many a thread has; LocalBytes what did not fit in them.
	Registers, LocalBytes int
}

// Load compiles one kernel of a source for the GPU.
func (d *Device) Load(s *Source, kernel string, constants [4]uint32) (*Function, error) {
	ptx, err := s.Specialise(kernel, constants)
	if err != nil {
		return nil, err
	}
	f := &Function{name: kernel, params: s.Params(kernel)}
	if f.params > maxParams {
		return nil, fmt.Errorf("cuda: %s has %d parameters, want at most %d", kernel, f.params, maxParams)
	}
	image, log := append([]byte(ptx), 0), make([]byte, 4096)
	err = d.do("compile "+kernel, func() status { return d.compile(f, image, log) })
	if said, _, _ := bytes.Cut(log, []byte{0}); err != nil && len(said) > 0 {
		err = fmt.Errorf("%w: %s", err, bytes.TrimSpace(said))
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (d *Device) compile(f *Function, image, log []byte) status {
	var pin runtime.Pinner
	pin.Pin(&log[0])
	defer pin.Unpin()
	options := []int32{optionErrorLog, optionErrorLogBytes, optionLineInfo}
	values := []uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log)), 1}
	if s := d.api.cuModuleLoadDataEx(&f.module, &image[0], uint32(len(options)), &options[0], &values[0]); s != 0 {
		return s
	}
	if s := d.api.cuModuleGetFunction(&f.handle, f.module, "msl_"+f.name); s != 0 {
		return s
	}
	var registers, local int32
	d.api.cuFuncGetAttribute(&registers, functionRegisters, f.handle)
	d.api.cuFuncGetAttribute(&local, functionLocalBytes, f.handle)
	f.Registers, f.LocalBytes = int(registers), int(local)
	return 0
}

// Unload forgets a function.
func (d *Device) Unload(f *Function) error {
	return d.do("unload "+f.name, func() status { return d.api.cuModuleUnload(f.module) })
}
