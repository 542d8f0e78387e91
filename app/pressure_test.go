package main

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"calla/core/engine"
)

func TestPressureReachesTheEngine(t *testing.T) {
	r := startDemo(t, demoSettings(), nil, nil)
	ctx, cancel := context.WithCancel(context.Background())
	var level atomic.Int32
	ended := make(chan struct{})
	go func() {
		watchPressure(ctx, r.Engine, func() engine.Pressure { return engine.Pressure(level.Load()) }, time.Millisecond)
		close(ended)
	}()
	for _, p := range []engine.Pressure{engine.LowMemory, engine.NoMemory, engine.NoPressure} {
		level.Store(int32(p))
		for range 1000 {
			if r.Status().Pressure == p {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if got := r.Status().Pressure; got != p {
			t.Errorf("memory is %v, want %v", got, p)
		}
	}
	cancel()
	<-ended
}
