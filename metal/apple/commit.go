package apple

import (
	"errors"
	"fmt"

	"calla/metal"
)

const (
	// mostUnfinished is how many command buffers may be under way, as many as a
	// queue is for where nothing else is asked for: it makes the caller of one more
	// wait, however long that takes.
	mostUnfinished = 2 * mostCommands
	// carefulLists is how many lists after a failure are encoded dispatch by
	// dispatch, so that the next error names the one at fault.
	carefulLists = 16
)

var errClosed = errors.New("metal: the driver is closed")

// Commit implements metal.Driver.
func (d *Driver) Commit(l *metal.List) (metal.Completion, error) {
	d.order.Lock()
	defer d.order.Unlock()
	if err := d.ready(); err != nil {
		return nil, err
	}
	if len(l.Dispatches) == 0 {
		return &run{driver: d, done: true}, nil
	}
	if err := d.check(l); err != nil {
		return nil, err
	}
	spans := d.pace.cut(l)
	if err := d.makeRoom(len(spans)); err != nil {
		return nil, err
	}
	if d.careful > 0 {
		d.careful--
		spans = apart(spans)
	}
	label(l, spans)
	d.batch.fill(l, spans, d.pipelines, d.ordered)
	d.wire()
	return d.submit(l, spans)
}

// ready says why nothing can be committed. After a failure it starts anew, once
// nothing is under way: what a command buffer that failed did with the fence
// nobody says.
func (d *Driver) ready() error {
	if d.closed {
		return errClosed
	}
	if d.stuck != nil {
		if d.settle(nil); len(d.running) > 0 {
			return d.stuck
		}
		d.stuck = nil // it has come back
	}
	if d.lost != nil || !d.doubt {
		return d.lost
	}
	if d.settle(nil); d.stuck != nil || d.lost != nil {
		return errors.Join(d.stuck, d.lost)
	}
	d.gpu.release(d.handles.fence)
	if d.handles.fence = d.gpu.fence(d.handles.device); d.handles.fence == 0 {
		d.lost = fmt.Errorf("metal: %s gives no fence", d.facts.Name)
	}
	d.ordered, d.doubt = false, false
	return d.lost
}

// check says what in a list the device would not take.
func (d *Driver) check(l *metal.List) error {
	for i := range l.Dispatches {
		x := &l.Dispatches[i]
		if err := x.Check(); err != nil {
			return fmt.Errorf("%w (dispatch %d of %d)", err, i, len(l.Dispatches))
		}
		if err := d.checkPrepared(x); err != nil {
			return fmt.Errorf("metal: dispatch %d of %d: %w", i, len(l.Dispatches), err)
		}
	}
	return nil
}

func (d *Driver) checkPrepared(x *metal.Dispatch) error {
	p, ok := d.pipelines[x.Kernel]
	if !ok {
		return fmt.Errorf("%v was not prepared", x.Kernel)
	}
	if x.Threads > p.threads {
		return fmt.Errorf("%v with %d threads, this device has at most %d for it", x.Kernel, x.Threads, p.threads)
	}
	for _, b := range x.Buffers {
		if _, ok := b.Buffer.Native.(*memory); !ok {
			return fmt.Errorf("%v is given buffer %s, which was freed", x.Kernel, b.Buffer.Name)
		}
	}
	return nil
}

// makeRoom waits until so many more command buffers may be under way, and starts
// anew where it finds that one of those before them failed.
func (d *Driver) makeRoom(more int) error {
	for d.unfinished()+more > mostUnfinished && len(d.running) > 0 {
		if d.settle(d.running[0]); d.stuck != nil {
			return d.stuck
		}
	}
	return d.ready()
}

// unfinished counts the command buffers under way.
func (d *Driver) unfinished() int {
	n := 0
	for _, r := range d.running {
		n += len(r.commands)
	}
	return n
}

// submit commits what the batch holds.
func (d *Driver) submit(l *metal.List, spans []span) (metal.Completion, error) {
	handles, err := d.gpu.submit(d.handles.queue, d.handles.fence, &d.batch)
	r := &run{driver: d, serial: d.count(), commands: commands(l, spans, handles)}
	if len(r.commands) > 0 {
		d.running = append(d.running, r)
	} else {
		d.ended(r.serial)
	}
	d.ordered = true
	if err != nil {
		d.doubt = true
		// What was committed of it runs; what that writes nobody reads.
		return nil, fmt.Errorf("metal: %d of %d command buffers committed: %w", len(handles), d.batch.commands, err)
	}
	return r, nil
}

// commands says what stands in the command buffers that were committed.
func commands(l *metal.List, spans []span, handles []handle) []command {
	var out []command
	for _, s := range spans {
		if s.command {
			if len(out) == len(handles) {
				break
			}
			out = append(out, command{handle: handles[len(out)]})
		}
		c := &out[len(out)-1]
		c.encoders = append(c.encoders, s.label)
		for i := s.first; i < s.end; i++ {
			c.threadgroups += threadgroups(&l.Dispatches[i])
		}
	}
	return out
}
