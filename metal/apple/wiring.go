package apple

import "time"

// renewal is how often residency is asked for again while it is wanted. By reports
// macOS takes the memory of a GPU without work back after about a second, for all
// that was asked for once.
const renewal = 500 * time.Millisecond

// wiring keeps the memory of a driver where the GPU can reach it at once while it
// is in use, where the system has residency sets. What is not wired the system may
// compress or move, and brings back before a command buffer runs.
type wiring struct {
	wired   bool
	changed bool // buffers were added since
	used    time.Time
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
	w.used = time.Now()
	if w.wired && !w.changed {
		return
	}
	d.gpu.wire(d.handles.set, true)
	w.changed = false
	if w.wired {
		return
	}
	w.wired = true
	if w.timer == nil {
		w.timer = time.AfterFunc(renewal, d.renew)
	} else {
		w.timer.Reset(renewal)
	}
}

// renew asks for the memory again, or lets it go after a while without lists.
func (d *Driver) renew() {
	d.mu.Lock()
	defer d.mu.Unlock()
	w := &d.wiring
	if !w.wired {
		return
	}
	if d.past == d.last && time.Since(w.used) >= d.options.Idle {
		d.gpu.wire(d.handles.set, false)
		w.wired = false
		return
	}
	d.gpu.wire(d.handles.set, true)
	w.timer.Reset(renewal)
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
