package cpu

import (
	"fmt"
	"os"
	"runtime"

	"calla/core/backend"
	"calla/core/checkpoint"
)

// Options are the choices of a device. The zero value is what the product runs.
type Options struct {
	// Rounding is that of values between operations.
	Rounding Rounding
	// Threads is how many goroutines compute; 0 takes GOMAXPROCS.
	Threads int
	// Kernels chooses among those that the processor can run.
	Kernels Kernels
	// Observe, where set, is shown the values inside each call, as they are
	// made: rows of width values under a name, of one layer. Whole-model values
	// have layer -1. Values is valid during the call only.
	Observe func(layer int, name string, width int, values []float32)
}

// Device runs the model on the processor's cores.
type Device struct {
	options Options
	kernels *kernels
	pool    *pool
}

var _ backend.Device = (*Device)(nil)

// New makes a device. It panics where o names kernels that are not available.
func New(o Options) *Device {
	if o.Threads <= 0 {
		o.Threads = runtime.GOMAXPROCS(0)
	}
	return &Device{options: o, kernels: o.Kernels.kernels(), pool: newPool(o.Threads)}
}

// Name implements backend.Device.
func (d *Device) Name() string {
	if d.options.Threads == 1 {
		return "CPU (1 thread)"
	}
	return fmt.Sprintf("CPU (%d threads)", d.options.Threads)
}

// Memory implements backend.Device. The budget is the machine's memory, or less
// where a control group limits this process.
func (d *Device) Memory() (budget, total int64) {
	total = machineMemory()
	return controlGroupLimit(os.DirFS("/"), total), total
}

// ScratchBytes implements backend.Device.
func (d *Device) ScratchBytes(c checkpoint.Config, rows, maxTokens int) int64 {
	return int64(scratchBytes(c, rows, maxTokens, d.options.Threads))
}

// Close implements backend.Device. Its weights and states must be closed.
func (d *Device) Close() error {
	d.pool.close()
	return nil
}
