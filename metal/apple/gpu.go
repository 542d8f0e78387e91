package apple

import (
	"fmt"
	"time"
)

// gpu is what the shim offers, call by call. Its methods may be called by several
// goroutines at once.
type gpu interface {
	device() (handle, facts, error)
	queue(device handle, most int) handle
	fence(device handle) handle

	compile(device handle, source string, language uint32) (handle, error)
	load(device handle, path string) (handle, error)
	functions(library handle) []string

	// archive opens one, or makes one where there is no path.
	archive(device handle, path string) (handle, error)
	save(archive handle, path string) error
	// pipeline fills the spec's results in.
	pipeline(device handle, function string, spec *pipelineSpec) (handle, error)

	// buffer returns the memory as the processor sees it, nil where it does not.
	buffer(device handle, label string, bytes int64, host bool) (handle, []byte)

	residency(device, queue handle) (handle, error)
	reside(set, buffer handle, add bool)
	wire(set handle, wired bool)

	// submit commits the command buffers of a batch and returns those committed:
	// all, or fewer and an error.
	submit(queue, fence handle, b *batch) ([]handle, error)
	// transfer commits a command buffer of copies. Its encoder waits for the fence
	// where ordered is set, and updates it.
	transfer(queue, fence handle, ordered bool, moves []move) (handle, error)
	// wait returns a result that is under way where the time is over.
	wait(command handle, limit time.Duration) (result, error)

	release(handle)
	// live returns how many handles were not released.
	live() uint64
}

// facts are what there is to know of a device before anything is made on it.
type facts struct {
	deviceFacts
	Name      string
	Memory    int64  // of the machine
	Budget    int64  // what the system recommends to use at most
	MaxBuffer int64  // of one buffer
	OS        string // "14.5"
	Build     string // of the system: "23F79"
	Virtual   bool   // the system is the guest of another
}

// nativeError is an error of Metal's.
type nativeError struct {
	Code int64
	Text string
}

func (e *nativeError) Error() string {
	if e.Code == 0 {
		return e.Text
	}
	return fmt.Sprintf("%s (%d)", e.Text, e.Code)
}

// Codes of command buffers' errors after which the device runs nothing more for
// this process.
const (
	accessRevoked = 4
	deviceRemoved = 11
)
