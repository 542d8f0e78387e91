package apple

import (
	"errors"
	"fmt"

	"calla/metal"
)

// run is a committed list.
type run struct {
	driver   *Driver
	serial   uint64
	commands []command // not seen to end
	done     bool
	err      error
}

// command is a committed command buffer and what its encoders are.
type command struct {
	handle       handle
	encoders     []string
	threadgroups float64
}

var _ metal.Completion = (*run)(nil)

// Wait implements metal.Completion. Lists end in order: once it returns, those
// before have ended too, or are given up.
func (r *run) Wait() error {
	d := r.driver
	d.order.Lock()
	defer d.order.Unlock()
	if !r.done {
		d.settle(r)
	}
	if !r.done {
		return d.stuck
	}
	return r.err
}

// settle waits for the runs up to one, or for all, and stops at one that does not
// end in time. It returns the first error. The caller holds order.
func (d *Driver) settle(upTo *run) error {
	var first error
	for len(d.running) > 0 {
		r := d.running[0]
		if err := d.finish(r); err != nil {
			d.stuck = err
			return errors.Join(first, err)
		}
		if first == nil {
			first = r.err
		}
		d.running = d.running[1:]
		d.ended(r.serial)
		if r == upTo {
			break
		}
	}
	return first
}

// finish waits for the command buffers of a run. An error is that of one which
// does not end; how the others ended stands in the run.
func (d *Driver) finish(r *run) error {
	for len(r.commands) > 0 {
		c := r.commands[0]
		limit := d.options.Limit
		if d.stuck != nil {
			limit = 0 // it had its time
		}
		res, err := d.gpu.wait(c.handle, limit)
		switch {
		case res.State == underWay:
			return fmt.Errorf("metal: %s: not done after %v", c.encoders[0], d.options.Limit)
		case err != nil:
			d.failed(r, c, res, err)
		default:
			d.pace.learn(c.threadgroups, res.Ended-res.Begun)
		}
		d.gpu.release(c.handle)
		r.commands = r.commands[1:]
	}
	r.done = true
	return nil
}

// failed notes that a command buffer of a run failed. The run's error is that of
// the first which did.
func (d *Driver) failed(r *run, c command, res result, err error) {
	where := c.encoders[0]
	switch {
	case res.Encoder >= 0 && int(res.Encoder) < len(c.encoders):
		where = c.encoders[res.Encoder]
	case len(c.encoders) > 1:
		where += " or one behind it"
	}
	if r.err == nil {
		r.err = fmt.Errorf("metal: %s: %w", where, err)
	}
	d.doubt, d.careful = true, carefulLists
	native := (*nativeError)(nil)
	if errors.As(err, &native) && (native.Code == accessRevoked || native.Code == deviceRemoved) {
		d.lost = fmt.Errorf("metal: the GPU is lost: %w", r.err)
	}
}
