package main

import (
	"context"
	"time"

	"calla/core/engine"
)

// pressureEvery is how often the machine's memory is looked at.
const pressureEvery = 2 * time.Second

// watchPressure tells an engine how short of memory the machine is, until ctx
// ends.
func watchPressure(ctx context.Context, e *engine.Engine, read func() engine.Pressure, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			e.SetPressure(read())
		case <-ctx.Done():
			return
		}
	}
}
