package emulator

import (
	"fmt"
	"unsafe"
)

// Machine runs lists of launches.
type Machine interface {
	// Check says why a kernel can't be launched with those values of its function
	// constants: it does not exist, or has others.
	Check(kernel string, constants [4]uint32) error
	// Alloc makes a buffer; all its bytes are 0xFF.
	Alloc(bytes int) (*Buffer, error)
	Free(*Buffer)
	// Run runs launches in turn and returns when the last is done. The error is
	// a *Fault where a launch was at fault.
	Run(launches []Launch, how Schedule) error
	Close() error
}

// Schedule says in which order lanes, threadgroups and launches without a
// barrier between them run.
type Schedule struct {
	// Order is 0 for ascending, 1 for descending, else the seed of a lot.
	Order uint32
	// Workers is how many threads run threadgroups; 0 means 1.
	Workers int
}

// Buffer is memory that kernels can be given.
type Buffer struct {
	Bytes []byte
}

// Launch is one dispatch of a kernel.
type Launch struct {
	Kernel    string
	Constants [4]uint32 // values of the kernel's function constants by index, else 0
	Barrier   bool      // waits for all launches before it
	Groups    [3]uint32
	Threads   [3]uint32
	Shared    uint32 // bytes of threadgroup memory at index 0
	Bound     []Bound
}

// Bound is what a kernel finds at a buffer slot: a buffer from an offset on, or
// bytes of its own.
type Bound struct {
	Slot   int
	Buffer *Buffer
	Offset int
	Bytes  []byte
}

// Fault is what a launch did wrong.
type Fault struct {
	Launch  int // in the list
	Kernel  string
	Message string
}

func (f *Fault) Error() string {
	return fmt.Sprintf("emulator: launch %d, kernel %s: %s", f.Launch, f.Kernel, f.Message)
}

// address returns where bound memory starts, and its length.
func (b Bound) address() (unsafe.Pointer, uint64) {
	bytes := b.Bytes
	if b.Buffer != nil {
		bytes = b.Buffer.Bytes[b.Offset:]
	}
	return unsafe.Pointer(unsafe.SliceData(bytes)), uint64(len(bytes))
}
