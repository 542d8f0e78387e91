package apple

import "time"

// wiring keeps the memory of a driver where the GPU can reach it at once while it
// is in use, where the system has residency sets. What is not wired the system may
// compress or move, and brings back before a command buffer runs.
type wiring struct {
	wired   bool
	changed bool // buffers were added since
	timer   *time.Timer
}

// wire makes all buffers resident before a list.
func (d *Driver) wire() {
	if d.handles.set == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &d.wiring
	if !w.wired || w.changed {
		d.gpu.wire(d.handles.set, true)
		w.wired, w.changed = true, false
	}
	if w.timer == nil {
		w.timer = time.AfterFunc(d.options.Idle, d.idle)
	} else {
		w.timer.Reset(d.options.Idle)
	}
}

// idle lets the memory go after a while without lists.
func (d *Driver) idle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &d.wiring
	switch {
	case !w.wired:
	case d.past < d.last:
		w.timer.Reset(d.options.Idle)
	default:
		d.gpu.wire(d.handles.set, false)
		w.wired = false
	}
}

// unwire ends it for good.
func (d *Driver) unwire() {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &d.wiring
	if w.timer != nil {
		w.timer.Stop()
	}
	if w.wired {
		d.gpu.wire(d.handles.set, false)
		w.wired = false
	}
}
