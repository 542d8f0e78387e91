package apple

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"calla/metal"
)

// Options say where a driver finds and keeps things. The zero value compiles the
// kernels at every start.
type Options struct {
	// Libraries is a folder of libraries that a release brings, calla.metallib
	// and, for matrix units, calla-tensor.metallib. Where one is missing or does
	// not load, the sources are compiled.
	Libraries string
	// Cache is a folder of ours for pipelines that were compiled once; none is
	// kept where it is empty.
	Cache string
	// Limit is how long a command buffer may take before the GPU counts as lost; 0
	// is a minute.
	Limit time.Duration
	// Idle is after how long without work the system may take the memory back for
	// others, to be brought in again with the next list; 0 is three minutes, about
	// as long as a person reads and types.
	Idle time.Duration
}

// Driver runs lists on an Apple GPU.
//
// Invariants:
//   - running holds the runs that were committed and not seen to end, in order;
//   - ordered says that the fence is updated behind all that was committed, doubt
//     that something failed and nobody knows whether it is;
//   - memory that was freed is in dead as long as a run may touch it.
type Driver struct {
	gpu     gpu
	options Options
	facts   facts
	handles struct{ device, queue, fence, set handle }

	libraries libraries
	archive   archive
	units     sync.Once
	hasUnits  bool
	noUnits   string // why not, where the hardware has them

	// order is held by whoever commits lists, waits for them or prepares kernels.
	order     sync.Mutex
	pipelines map[metal.Kernel]pipeline
	batch     batch
	pace      pace
	running   []*run
	ordered   bool
	doubt     bool
	staging   *metal.Buffer // between the processor and memory it does not see; nil until needed
	careful   int           // lists yet to be encoded dispatch by dispatch
	stuck     error         // what did not end in time
	lost      error         // why nothing will run any more
	closed    bool

	// mu guards what follows, which NewBuffer, Free and the timer reach too. It is
	// never held while anything is waited for.
	mu     sync.Mutex
	last   uint64 // serial of the last run
	past   uint64 // of the last that ended
	dead   []dead
	wiring wiring
}

var _ metal.Driver = (*Driver)(nil)

// newDriver starts a driver on what the shim offers.
func newDriver(g gpu, o Options) (*Driver, error) {
	if o.Limit == 0 {
		o.Limit = time.Minute
	}
	if o.Idle == 0 {
		o.Idle = 3 * time.Minute
	}
	d := &Driver{gpu: g, options: o, pipelines: map[metal.Kernel]pipeline{}}
	var err error
	if d.handles.device, d.facts, err = g.device(); err != nil {
		return nil, fmt.Errorf("metal: %w", err)
	}
	if err := d.start(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// start checks the device and makes what every list needs.
func (d *Driver) start() error {
	if err := require(d.facts); err != nil {
		return err
	}
	h := &d.handles
	if h.queue = d.gpu.queue(h.device, mostUnfinished); h.queue == 0 {
		return fmt.Errorf("metal: %s gives no command queue", d.facts.Name)
	}
	if h.fence = d.gpu.fence(h.device); h.fence == 0 {
		return fmt.Errorf("metal: %s gives no fence", d.facts.Name)
	}
	if d.facts.Residency != 0 && !d.facts.Virtual {
		// Without a set, what is bound is resident while it is used. In a virtual
		// machine there are sets and they fail.
		h.set, _ = d.gpu.residency(h.device, h.queue)
	}
	return nil
}

// Name implements metal.Driver.
func (d *Driver) Name() string {
	name := d.facts.Name
	switch {
	case d.MatrixUnits():
		name += " (matrix units)"
	case d.noUnits != "":
		name += fmt.Sprintf(" (matrix units unused: %s)", d.noUnits)
	}
	return name
}

// Memory implements metal.Driver.
func (d *Driver) Memory() (budget, total int64) { return d.facts.Budget, d.facts.Memory }

// MaxBuffer implements metal.Driver.
func (d *Driver) MaxBuffer() int64 { return d.facts.MaxBuffer }

// MatrixUnits implements metal.Driver. Kernels that do not compile on a system of
// tomorrow cost speed, not the start.
func (d *Driver) MatrixUnits() bool {
	d.units.Do(func() {
		if !matrixUnits(d.facts) {
			return
		}
		if err := d.libraries.open(d, tensorSources); err != nil {
			d.noUnits, _, _ = strings.Cut(err.Error(), "\n")
			return
		}
		d.hasUnits = true
	})
	return d.hasUnits
}

// Close implements metal.Driver. It waits for what runs; memory that the GPU may
// still be at work on is not given back.
func (d *Driver) Close() error {
	d.archive.saving.Wait()
	d.order.Lock()
	defer d.order.Unlock()
	if d.closed {
		return nil
	}
	d.closed = true
	d.unwire()
	err := d.settle(nil)
	if len(d.running) > 0 {
		return fmt.Errorf("%w: the memory of %d lists stays with the GPU", err, len(d.running))
	}
	if d.staging != nil {
		d.Free(d.staging)
	}
	for _, p := range d.pipelines {
		d.gpu.release(p.handle)
	}
	d.libraries.close(d.gpu)
	h := d.handles
	for _, x := range []handle{d.archive.handle, h.set, h.fence, h.queue, h.device} {
		if x != 0 {
			d.gpu.release(x)
		}
	}
	return err
}
