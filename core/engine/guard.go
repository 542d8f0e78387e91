package engine

import "calla/core/crash"

// guard turns a panic into a *DeviceError: one bad step must not end the
// process.
func (w *worker) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c := crash.Of(p)
			w.o.Log.Error("engine: "+c.Error(), "stack", c.Frames)
			err = &DeviceError{c}
		}
	}()
	return f()
}
