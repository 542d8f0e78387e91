package metal

// Private is a Driver of a device with memory of its own: what the processor has
// no need to see lies there. Its methods that move bytes come behind all lists
// committed before, and return when the bytes of the processor may be used again.
// They may be called by several goroutines at once.
type Private interface {
	Driver
	// Unified reports that NewBuffer's memory is as near to the device as any: what
	// comes from files is best read right into it.
	Unified() bool
	// NewPrivate is NewBuffer for a buffer whose Bytes are nil.
	NewPrivate(name string, bytes int64) (*Buffer, error)
	Write(to Binding, from []byte) error
	Read(to []byte, from Binding) error
	// Copy copies between buffers that don't overlap, Clear makes zeros.
	Copy(to, from Binding, bytes int64) error
	Clear(to Binding, bytes int64) error
}

// newPrivate makes a buffer that the processor reaches only through the functions
// below: of weights where these can't be read to where they stay, of states and most
// of the scratch.
func newPrivate(d Driver, name string, bytes int64) (*Buffer, error) {
	if p, ok := d.(Private); ok {
		return p.NewPrivate(name, bytes)
	}
	return d.NewBuffer(name, bytes)
}

// newLoaded makes a buffer that weights are loaded into.
func newLoaded(d Driver, name string, bytes int64) (*Buffer, error) {
	if p, ok := d.(Private); ok && p.Unified() {
		return d.NewBuffer(name, bytes)
	}
	return newPrivate(d, name, bytes)
}

// send copies from the processor's memory.
func send(d Driver, to Binding, from []byte) error {
	if p, ok := d.(Private); ok {
		return p.Write(to, from)
	}
	copy(to.Buffer.Bytes[to.Offset:], from)
	return nil
}

// fetch copies to the processor's memory.
func fetch(d Driver, from Binding, bytes int64) ([]byte, error) {
	to := make([]byte, bytes)
	if p, ok := d.(Private); ok {
		return to, p.Read(to, from)
	}
	copy(to, from.Buffer.Bytes[from.Offset:])
	return to, nil
}

// copyBytes copies from one buffer to another.
func copyBytes(d Driver, to, from Binding, bytes int64) error {
	if p, ok := d.(Private); ok {
		return p.Copy(to, from, bytes)
	}
	copy(to.Buffer.Bytes[to.Offset:][:bytes], from.Buffer.Bytes[from.Offset:])
	return nil
}

// zero makes zeros of a whole buffer.
func zero(d Driver, b *Buffer) error {
	if p, ok := d.(Private); ok {
		return p.Clear(b.at(0), b.Size)
	}
	clear(b.Bytes)
	return nil
}
