package main

import (
	"context"
	"log/slog"
	"time"

	"calla/app/power"
	"calla/core/engine"
)

const (
	// awakeEvery is how often it is looked at whether tokens flow.
	awakeEvery = time.Second
	// sleepPatience is how long the machine's sleep waits for the step under way.
	// Systems that tell of their sleep wait from 5 to 30 seconds.
	sleepPatience = 20 * time.Second
)

// stayAwake keeps the machine from falling asleep by itself while busy says so,
// until ctx ends.
func stayAwake(ctx context.Context, busy func() bool, m power.Machine, every time.Duration, log *slog.Logger) {
	release := func() {}
	defer func() { release() }()
	held := false
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if b := busy(); b != held {
			held = b
			release()
			release = func() {}
			if b {
				if r, err := m.Hold("Calla is answering"); err == nil {
					release = r
				} else {
					log.Debug("the machine may fall asleep meanwhile", "error", err)
				}
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// followSleep stops the engine between two tokens when the machine goes to
// sleep, and lets it go on when that is awake, until ctx ends.
func followSleep(ctx context.Context, e *engine.Engine, m power.Machine, log *slog.Logger) {
	err := m.Watch(ctx, func() {
		patience, cancel := context.WithTimeout(ctx, sleepPatience)
		defer cancel()
		if err := e.Suspend(patience); err != nil {
			log.Warn("the machine sleeps with a step on the device", "error", err)
		}
	}, e.Resume)
	e.Resume() // nobody else would
	if err != nil && ctx.Err() == nil {
		log.Debug("the machine's sleep comes without notice", "error", err)
	}
}

// working reports whether tokens flow, in or out.
func working(e *engine.Engine) func() bool {
	return func() bool { return e.Status().Running != nil }
}
