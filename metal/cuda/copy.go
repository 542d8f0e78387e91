//go:build linux

package cuda

import (
	"fmt"
	"unsafe"
)

// Alloc takes memory of the GPU. Its contents are anything.
func (d *Device) Alloc(bytes int64) (Pointer, error) {
	var p Pointer
	err := d.do(fmt.Sprintf("take %d bytes", bytes), func() status { return d.api.cuMemAlloc(&p, uint64(bytes)) })
	return p, err
}

// Free gives memory of Alloc back, once what was launched is done with it.
func (d *Device) Free(p Pointer) error {
	return d.do("free memory", func() status { return d.api.cuMemFree(p) })
}

// AllocShared takes memory of this machine that the GPU reads and writes where
// it lies, page-aligned.
func (d *Device) AllocShared(bytes int64) ([]byte, Pointer, error) {
	var host unsafe.Pointer
	var p Pointer
	err := d.do(fmt.Sprintf("take %d shared bytes", bytes), func() status {
		if s := d.api.cuMemHostAlloc(&host, uint64(bytes), hostMapped); s != 0 {
			return s
		}
		return d.api.cuMemHostGetPointer(&p, host, 0)
	})
	if err != nil {
		return nil, 0, err
	}
	return unsafe.Slice((*byte)(host), bytes), p, nil
}

// FreeShared gives memory of AllocShared back. Nothing may be under way.
func (d *Device) FreeShared(memory []byte) error {
	return d.do("free shared memory", func() status {
		return d.api.cuMemFreeHost(unsafe.Pointer(unsafe.SliceData(memory)))
	})
}

// Write copies to the GPU. It returns when from may be used again.
func (d *Device) Write(to Pointer, from []byte) error {
	if len(from) == 0 {
		return nil
	}
	return d.do("write memory", func() status {
		return d.api.cuMemcpyHtoD(to, unsafe.Pointer(unsafe.SliceData(from)), uint64(len(from)))
	})
}

// Read copies from the GPU, once what was launched is done.
func (d *Device) Read(to []byte, from Pointer) error {
	if len(to) == 0 {
		return nil
	}
	return d.do("read memory", func() status {
		return d.api.cuMemcpyDtoH(unsafe.Pointer(unsafe.SliceData(to)), from, uint64(len(to)))
	})
}

// Copy puts a copy within the GPU on the queue. The two don't overlap.
func (d *Device) Copy(to, from Pointer, bytes int64) error {
	return d.do("copy memory", func() status {
		return d.api.cuMemcpyDtoDAsync(to, from, uint64(bytes), d.stream)
	})
}

// Fill puts it on the queue that all bytes become value.
func (d *Device) Fill(to Pointer, value byte, bytes int64) error {
	return d.do("fill memory", func() status {
		return d.api.cuMemsetD8Async(to, value, uint64(bytes), d.stream)
	})
}
