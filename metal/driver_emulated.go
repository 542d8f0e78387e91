package metal

import (
	"errors"
	"fmt"
	"runtime"

	"calla/metal/emulator"
)

// Emulated runs lists on the emulated device: the same kernels, compiled for the
// processor. Commit returns when the list is done.
type Emulated struct {
	machine  emulator.Machine
	schedule emulator.Schedule
	// Units makes it a device with matrix units.
	Units bool
}

var _ Driver = (*Emulated)(nil)

// OpenEmulated loads the library that scripts/emulator builds.
func OpenEmulated(path string) (*Emulated, error) {
	m, err := emulator.Open(path)
	if err != nil {
		return nil, err
	}
	return NewEmulated(m, emulator.Schedule{Workers: runtime.GOMAXPROCS(0)}), nil
}

// NewEmulated runs lists on a machine, lanes and threadgroups as how says.
func NewEmulated(m emulator.Machine, how emulator.Schedule) *Emulated {
	return &Emulated{machine: m, schedule: how}
}

// Name implements Driver.
func (d *Emulated) Name() string { return "emulated Apple GPU" }

// Memory implements Driver: that the processor has is not the device's to tell.
func (d *Emulated) Memory() (budget, total int64) { return 0, 0 }

// MaxBuffer implements Driver: Metal's least on any supported Mac.
func (d *Emulated) MaxBuffer() int64 { return 4 << 30 }

// MatrixUnits implements Driver.
func (d *Emulated) MatrixUnits() bool { return d.Units }

// Prepare implements Driver.
func (d *Emulated) Prepare(kernels []Kernel) error {
	for _, k := range kernels {
		if err := d.machine.Check(k.Name, k.Constants); err != nil {
			return fmt.Errorf("metal: %w: scripts/emulator builds the device again", err)
		}
	}
	return nil
}

// NewBuffer implements Driver.
func (d *Emulated) NewBuffer(name string, bytes int64) (*Buffer, error) {
	b, err := d.machine.Alloc(int(bytes))
	if err != nil {
		return nil, err
	}
	return &Buffer{Name: name, Size: bytes, Bytes: b.Bytes, Native: b}, nil
}

// Free implements Driver.
func (d *Emulated) Free(b *Buffer) {
	d.machine.Free(b.Native.(*emulator.Buffer))
	b.Bytes = nil
}

// Commit implements Driver.
func (d *Emulated) Commit(l *List) (Completion, error) {
	launches := make([]emulator.Launch, len(l.Dispatches))
	for i, x := range l.Dispatches {
		if err := x.Check(); err != nil {
			return nil, err
		}
		bound := []emulator.Bound{{Slot: 0, Bytes: x.Args}}
		for s, b := range x.Buffers {
			bound = append(bound, emulator.Bound{Slot: s + 1, Buffer: b.Buffer.Native.(*emulator.Buffer), Offset: int(b.Offset)})
		}
		launches[i] = emulator.Launch{
			Kernel: x.Kernel.Name, Constants: x.Kernel.Constants, Barrier: x.Barrier, Groups: x.Grid,
			Threads: [3]uint32{x.Threads, 1, 1}, Shared: x.Shared, Bound: bound,
		}
	}
	err := d.machine.Run(launches, d.schedule)
	if fault := (*emulator.Fault)(nil); errors.As(err, &fault) {
		err = fmt.Errorf("metal: dispatch %d of %d: %w", fault.Launch, len(launches), err)
	}
	return done{err}, nil
}

// Close implements Driver.
func (d *Emulated) Close() error { return d.machine.Close() }

// done is a list that has run.
type done struct{ err error }

func (d done) Wait() error { return d.err }
