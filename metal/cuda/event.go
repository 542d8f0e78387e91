//go:build linux

package cuda

import "time"

// Event is a place in the queue.
type Event struct {
	device *Device
	handle uintptr
}

// Record returns the place behind all that was launched.
func (d *Device) Record() (*Event, error) {
	e := &Event{device: d}
	return e, d.do("record an event", func() status {
		if s := d.api.cuEventCreate(&e.handle, eventBlocking); s != 0 {
			return s
		}
		return d.api.cuEventRecord(e.handle, d.stream)
	})
}

// Wait returns when the queue has come to the event. The error may be that of
// anything launched before it.
func (e *Event) Wait() error {
	return e.device.do("run", func() status { return e.device.api.cuEventSynchronize(e.handle) })
}

// Since returns the time from another event to this one; both are past.
func (e *Event) Since(from *Event) (time.Duration, error) {
	var ms float32
	err := e.device.do("read an event", func() status { return e.device.api.cuEventElapsedTime(&ms, from.handle, e.handle) })
	return time.Duration(float64(ms) * float64(time.Millisecond)), err
}

// Free forgets the event.
func (e *Event) Free() error {
	return e.device.do("free an event", func() status { return e.device.api.cuEventDestroy(e.handle) })
}

// Graph is launches that were recorded, to be put on the queue in one call.
type Graph struct {
	device *Device
	exec   uintptr
}

// Capture records what launch puts on the queue, which does not run.
func (d *Device) Capture(launch func() error) (*Graph, error) {
	g := &Graph{device: d}
	if err := d.do("begin a graph", func() status { return d.api.cuStreamBeginCapture(d.stream, captureRelaxed) }); err != nil {
		return nil, err
	}
	failed := launch()
	var graph uintptr
	err := d.do("end a graph", func() status { return d.api.cuStreamEndCapture(d.stream, &graph) })
	if failed != nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	return g, d.do("make a graph", func() status {
		defer d.api.cuGraphDestroy(graph)
		return d.api.cuGraphInstantiate(&g.exec, graph, 0)
	})
}

// Launch puts the graph on the queue.
func (g *Graph) Launch() error {
	return g.device.do("run a graph", func() status { return g.device.api.cuGraphLaunch(g.exec, g.device.stream) })
}

// Free forgets the graph. It may not be under way.
func (g *Graph) Free() error {
	return g.device.do("free a graph", func() status { return g.device.api.cuGraphExecDestroy(g.exec) })
}
