package metal

import (
	"time"

	"calla/core/backend"
	"calla/core/checkpoint"
)

// Options are the choices of a device. The zero value is what the product runs.
type Options struct {
	// Observe, where set, is shown values inside each call, rows of width values
	// under a name, of one layer, -1 for the whole model's. Each block is then a
	// list of its own.
	Observe func(layer int, name string, width int, values []float32)
	// Record, where set, is shown each list before it is committed.
	Record func(*List)
	// CallTime is how long a call may take; 0 is any time.
	CallTime time.Duration
}

// Device runs the model on a driver's hardware.
type Device struct {
	driver  Driver
	options Options
}

var _ backend.Device = (*Device)(nil)

// New makes a device, which owns the driver from here on.
func New(d Driver, o Options) *Device { return &Device{d, o} }

// Name implements backend.Device.
func (d *Device) Name() string { return d.driver.Name() }

// Memory implements backend.Device.
func (d *Device) Memory() (budget, total int64) { return d.driver.Memory() }

// ScratchBytes implements backend.Device. Longer contexts need no more.
func (d *Device) ScratchBytes(c checkpoint.Config, rows, _ int) int64 {
	return scratchBytes(newShapes(c), rows)
}

// Close implements backend.Device. Its weights and states must be closed.
func (d *Device) Close() error { return d.driver.Close() }
