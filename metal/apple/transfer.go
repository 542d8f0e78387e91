package apple

import (
	"fmt"

	"calla/metal"
)

// stagingBytes is how much is moved at once between the processor and memory that
// it does not see.
const stagingBytes = 8 << 20

var _ metal.Private = (*Driver)(nil)

// Unified implements metal.Private.
func (d *Driver) Unified() bool { return true }

// NewPrivate implements metal.Private.
func (d *Driver) NewPrivate(name string, bytes int64) (*metal.Buffer, error) {
	return d.newBuffer(name, bytes, false)
}

// Write implements metal.Private.
func (d *Driver) Write(to metal.Binding, from []byte) error {
	return d.pieces(len(from), func(stage metal.Binding, at, n int) error {
		copy(stage.Buffer.Bytes, from[at:at+n])
		return d.move("write", offset(to, at), stage, n)
	})
}

// Read implements metal.Private.
func (d *Driver) Read(to []byte, from metal.Binding) error {
	return d.pieces(len(to), func(stage metal.Binding, at, n int) error {
		err := d.move("read", stage, offset(from, at), n)
		if err == nil {
			copy(to[at:at+n], stage.Buffer.Bytes)
		}
		return err
	})
}

// Copy implements metal.Private.
func (d *Driver) Copy(to, from metal.Binding, bytes int64) error {
	d.order.Lock()
	defer d.order.Unlock()
	return d.move("copy", to, from, int(bytes))
}

// Clear implements metal.Private.
func (d *Driver) Clear(to metal.Binding, bytes int64) error {
	d.order.Lock()
	defer d.order.Unlock()
	return d.move("clear", to, metal.Binding{}, int(bytes))
}

func offset(b metal.Binding, by int) metal.Binding {
	return metal.Binding{Buffer: b.Buffer, Offset: b.Offset + int64(by)}
}

// pieces calls f for every piece of n bytes that goes through the staging memory.
func (d *Driver) pieces(n int, f func(stage metal.Binding, at, n int) error) error {
	d.order.Lock()
	defer d.order.Unlock()
	if d.closed {
		return errClosed
	}
	if d.staging == nil {
		var err error
		if d.staging, err = d.NewBuffer("staging", stagingBytes); err != nil {
			return err
		}
	}
	for at := 0; at < n; at += stagingBytes {
		if err := f(metal.Binding{Buffer: d.staging}, at, min(stagingBytes, n-at)); err != nil {
			return err
		}
	}
	return nil
}

// move copies bytes behind all lists committed before, or clears where there is
// nothing to copy from, and waits for it. The caller holds order.
func (d *Driver) move(what string, to, from metal.Binding, bytes int) error {
	if bytes == 0 {
		return nil
	}
	m := move{Bytes: uint64(bytes)}
	var err error
	if m.To, m.ToOffset, err = place(what, to, bytes); err != nil {
		return err
	}
	if from.Buffer != nil {
		if m.From, m.FromOffset, err = place(what, from, bytes); err != nil {
			return err
		}
	}
	if d.closed {
		return errClosed
	}
	if err := d.makeRoom(1); err != nil {
		return err
	}
	d.wire()
	name := fmt.Sprintf("%s of %d bytes of %s", what, bytes, to.Buffer.Name)
	h, err := d.gpu.transfer(d.handles.queue, d.handles.fence, d.ordered, []move{m})
	if err != nil {
		return fmt.Errorf("metal: %s: %w", name, err)
	}
	r := &run{driver: d, serial: d.count(), commands: []command{{handle: h, encoders: []string{name}}}}
	d.running, d.ordered = append(d.running, r), true
	d.settle(r)
	if !r.done {
		return d.stuck
	}
	return r.err
}

// place says where bytes of a buffer are. Copies on a Mac are of whole words.
func place(what string, b metal.Binding, bytes int) (handle, uint64, error) {
	m, ok := b.Buffer.Native.(*memory)
	switch {
	case !ok:
		return 0, 0, fmt.Errorf("metal: %s: buffer %s was freed", what, b.Buffer.Name)
	case b.Offset < 0 || b.Offset+int64(bytes) > b.Buffer.Size:
		return 0, 0, fmt.Errorf("metal: %s: bytes %d to %d of buffer %s, which has %d", what, b.Offset, b.Offset+int64(bytes), b.Buffer.Name, b.Buffer.Size)
	case b.Offset%4 != 0 || bytes%4 != 0:
		return 0, 0, fmt.Errorf("metal: %s: bytes %d to %d of buffer %s, want whole words of 4", what, b.Offset, b.Offset+int64(bytes), b.Buffer.Name)
	}
	return m.handle, uint64(b.Offset), nil
}
