package metal

// Driver runs lists of dispatches on one piece of hardware. Its methods are
// called by one goroutine at a time, but for NewBuffer and Free.
type Driver interface {
	// Name says what it is, for people.
	Name() string
	// Memory returns the bytes this process may use, and the bytes that exist;
	// zero where that cannot be told.
	Memory() (budget, total int64)
	// MaxBuffer returns the most bytes of one buffer.
	MaxBuffer() int64
	// MatrixUnits reports whether prefill's products can run on matrix units,
	// by the kernels of shaders/tensor_matmul.metal.
	MatrixUnits() bool
	// Prepare makes kernels ready to be dispatched: no other is. It fails where one
	// does not exist, has other function constants or does not compile.
	Prepare(kernels []Kernel) error
	// NewBuffer makes a page-aligned buffer. Its contents are not zero.
	NewBuffer(name string, bytes int64) (*Buffer, error)
	Free(*Buffer)
	// Commit hands a list to the device in one call. Lists run in the order of
	// their commits. The list may be used again once Commit has returned.
	Commit(l *List) (Completion, error)
	Close() error
}

// Completion is a committed list on its way.
type Completion interface {
	// Wait returns when the list is done. An error names the dispatch at fault;
	// the contents of the buffers that the list writes are lost.
	Wait() error
}

// Buffer is memory of the device.
type Buffer struct {
	Name  string
	Size  int64
	Bytes []byte // the same memory as the processor sees it
	// Native is the driver's own.
	Native any
}

// at is where a buffer is bound.
func (b *Buffer) at(offset int64) Binding { return Binding{b, offset} }
