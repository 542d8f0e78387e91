package engine

import (
	"time"

	"calla/core/backend"
)

// A call may take StuckAfter, and once more for each of so many rows.
const stuckRows = 512

// allowance is how long a call of that many rows may take. Prefill calls are
// long on a slow device, and must not be taken for a fault.
func (o Options) allowance(rows int) time.Duration {
	return o.StuckAfter + o.StuckAfter*time.Duration(rows)/stuckRows
}

// attend begins to watch over the worker. The function that it returns ends it.
func (w *worker) attend() (leave func()) {
	w.expect(0)
	return func() {
		w.watch.Stop()
		w.meter.rest()
	}
}

// expect begins the time that the device has for a call of that many rows, or
// for what comes between two calls.
func (w *worker) expect(rows int) {
	a := w.o.allowance(rows)
	w.meter.expect(a)
	if a > 0 {
		w.watch.Reset(a)
	}
}

// call runs one call to its end, with none other on the device. Its error, if
// any, is a *DeviceError.
func (w *worker) call(rows int, begin func() (backend.Step, error)) (backend.Step, error) {
	w.pause()
	step, err := w.begin(rows, begin)
	if err != nil {
		return nil, err
	}
	return step, w.finish(step)
}

// begin commits a call.
func (w *worker) begin(rows int, begin func() (backend.Step, error)) (backend.Step, error) {
	w.expect(rows)
	step, err := begin()
	if err != nil {
		return nil, &DeviceError{err}
	}
	return step, nil
}

// finish waits for a call that was committed.
func (w *worker) finish(step backend.Step) error {
	if _, err := finished(step, nil); err != nil {
		return err
	}
	w.meter.stepped()
	w.expect(0)
	w.relieve()
	if w.isLost() {
		// The device came back, but the job has ended.
		return &DeviceError{ErrStuck}
	}
	return nil
}

// finished waits for a call that was committed, if it was. Its error, if any,
// is a *DeviceError.
func finished(step backend.Step, err error) (backend.Step, error) {
	if err == nil {
		err = step.Wait()
	}
	if err != nil {
		return nil, &DeviceError{err}
	}
	return step, nil
}

// isLost reports whether the running job's caller was told that it is over.
func (e *Engine) isLost() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.running != nil && e.running.lost
}

// giveUp runs when a call has had its time. Nobody waits for such a device;
// should it come back, the engine goes on.
func (e *Engine) giveUp() {
	if !e.meter.stuck() {
		return
	}
	e.o.Log.Error("engine: the device does not answer", "for", e.Status().StepAge)
	e.endAll(&DeviceError{ErrStuck})
}
