package engine

import (
	"context"
	"errors"
	"testing"

	"calla/core/backend/backendtest"
)

// Cached states go first; then new requests are refused; what runs goes on, and
// nothing ends the process.
func TestMemoryPressure(t *testing.T) {
	d := newGate()
	e := start(t, &d.Device, testOptions())
	a, b := join(turn(0, 90), open), join(turn(1, 90), open)
	first := submit(t, e, context.Background(), a, 1)
	d.steps <- struct{}{} // up to the snapshot
	d.steps <- struct{}{}
	if _, err := collect(first); err != nil {
		t.Fatal(err)
	}
	if c := d.Counts(); c.States != 1 || c.Snapshots == 0 {
		t.Fatalf("before it the device holds %+v, want a cached state", c)
	}

	running := submit(t, e, context.Background(), b, 3)
	eventually(t, "it runs", func() bool { return e.Status().Running != nil })
	waiting := submit(t, e, context.Background(), a, 1)
	e.SetPressure(LowMemory)
	d.steps <- struct{}{}
	eventually(t, "cached states are given back while it runs", func() bool { return d.Counts().States == 1 })

	e.SetPressure(NoMemory)
	if s := e.Status(); s.Pressure != NoMemory || s.State != Busy {
		t.Errorf("status: %s, memory %v", s.State, s.Pressure)
	}
	if _, err := e.Submit(context.Background(), Request{Prompt: a}); !errors.Is(err, ErrNoMemory) || !errors.Is(err, ErrQueueFull) {
		t.Errorf("Submit without memory: %v, want ErrNoMemory", err)
	}
	d.open()
	if o, err := collect(running); err != nil || len(o.tokens) != 3 {
		t.Errorf("what ran ended with %d tokens, %v", len(o.tokens), err)
	}
	if o, err := collect(waiting); err != nil || len(o.tokens) != 1 || o.CachedTokens != 0 {
		t.Errorf("what waited ended with %d tokens, %d cached, %v", len(o.tokens), o.CachedTokens, err)
	}
	e.Anticipate("", func() ([]int32, []int) { t.Error("prefilled ahead without memory"); return nil, nil })
	eventually(t, "all is given back", func() bool { c := d.Counts(); return c.States == 0 && c.Snapshots == 0 })

	e.SetPressure(NoPressure)
	r := Request{Prompt: a, MaxTokens: 1}
	generate(t, e, r)
	if o := generate(t, e, r); o.CachedTokens == 0 {
		t.Error("with memory again nothing is cached")
	}
}

// A device that is short of memory itself is an error of one request.
func TestNoStateAtAll(t *testing.T) {
	d := &backendtest.Device{Fault: func(op backendtest.Op) error {
		if op == backendtest.NewState {
			return errors.New("no memory")
		}
		return nil
	}}
	e := start(t, d, testOptions())
	for range 3 {
		var device *DeviceError
		if _, err := collect(submit(t, e, context.Background(), turn(0, 5), 1)); !errors.As(err, &device) {
			t.Errorf("without memory for a state: %v", err)
		}
	}
	if s := e.Status().State; s != Ready {
		t.Errorf("state %s, want ready", s)
	}
}
