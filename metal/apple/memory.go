package apple

import (
	"fmt"

	"calla/metal"
)

// memory is what a metal.Buffer is to this driver.
type memory struct{ handle handle }

// dead is memory that was freed while runs up to a serial were under way.
type dead struct {
	memory *memory
	serial uint64
}

// NewBuffer implements metal.Driver: memory of both processor and GPU.
func (d *Driver) NewBuffer(name string, bytes int64) (*metal.Buffer, error) {
	return d.newBuffer(name, bytes, true)
}

// newBuffer makes memory that the processor sees, or does not.
func (d *Driver) newBuffer(name string, bytes int64, host bool) (*metal.Buffer, error) {
	if bytes <= 0 || bytes > d.facts.MaxBuffer {
		return nil, fmt.Errorf("metal: buffer %s of %d bytes, want 1 to %d", name, bytes, d.facts.MaxBuffer)
	}
	h, contents := d.gpu.buffer(d.handles.device, name, bytes, host)
	if h == 0 {
		return nil, fmt.Errorf("metal: buffer %s: no memory for %d bytes on %s", name, bytes, d.facts.Name)
	}
	if set := d.handles.set; set != 0 {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.gpu.reside(set, h, true)
		d.wiring.changed = true
	}
	return &metal.Buffer{Name: name, Size: bytes, Bytes: contents, Native: &memory{h}}, nil
}

// Free implements metal.Driver. Command buffers do not keep what they use, so
// memory lives until all that were committed before are done.
func (d *Driver) Free(b *metal.Buffer) {
	m := b.Native.(*memory)
	b.Bytes, b.Native = nil, nil
	d.mu.Lock()
	defer d.mu.Unlock()
	d.dead = append(d.dead, dead{m, d.last})
	d.bury()
}

// count returns the serial of a new run.
func (d *Driver) count() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last++
	return d.last
}

// ended says that the runs up to a serial have ended.
func (d *Driver) ended(serial uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.past = serial
	d.bury()
}

// bury releases the dead that nothing under way can touch. The caller holds mu.
func (d *Driver) bury() {
	kept := d.dead[:0]
	for _, x := range d.dead {
		if x.serial > d.past {
			kept = append(kept, x)
			continue
		}
		if d.handles.set != 0 {
			d.gpu.reside(d.handles.set, x.memory.handle, false)
		}
		d.gpu.release(x.memory.handle)
	}
	clear(d.dead[len(kept):])
	d.dead = kept
}
