package engine

import (
	"context"
	"time"
)

// State says what an engine is doing.
type State string

// The states of an engine.
const (
	Loading  State = "loading"
	Ready    State = "ready"
	Busy     State = "busy"
	Unloaded State = "unloaded" // idle; the next request loads the model
	Failed   State = "failed"   // the model could not be loaded; the next request tries again
	Stuck    State = "stuck"    // the device does not answer
	Stopped  State = "stopped"
)

// Status is an engine at one moment. It holds no text and no tokens.
type Status struct {
	State State
	Error string // why it failed or is stuck

	LoadDone, LoadTotal int64 // bytes, while loading

	Queue    int // requests waiting
	QueueCap int
	Running  *Running
	// Ahead: the engine prefills what the next prompt will most likely begin
	// with, or is about to.
	Ahead bool
	// StepAge is how long the device has been at its step; zero while it has
	// nothing to do.
	StepAge time.Duration

	Last   *Finished // the last generation that ended well
	Totals Totals
	Hour   []Minute // those of the last hour with work, oldest first
	Cache  CacheStatus

	Pressure Pressure

	WeightBytes, MappedBytes int64
}

// Running is the generation on the device.
type Running struct {
	Stage                                         Stage
	Prompt                                        int // tokens
	Cached                                        int // of them, reused
	Prefilled                                     int // of them, evaluated or reused
	Generated                                     int
	Since                                         time.Time // of its start on the device
	PrefillTokensPerSecond, DecodeTokensPerSecond float64   // so far
}

// Finished is a generation that ended.
type Finished struct {
	Prompt, Cached, Generated                     int
	PrefillTokensPerSecond, DecodeTokensPerSecond float64
	At                                            time.Time
}

// Totals count from the start of the engine.
type Totals struct {
	Requests, Failures                 int64
	PromptTokens, CachedTokens, Tokens int64
	Steps                              int64
	PrefillSeconds, DecodeSeconds      float64
}

// CacheStatus is the prefix cache, between two generations.
type CacheStatus struct {
	Entries   int
	Snapshots int
	Tokens    int
	Bytes     int64
	Budget    int64
}

// Status returns what the engine is doing now.
func (e *Engine) Status() Status {
	e.mu.Lock()
	queue, ahead := e.waiting(), e.foreseen != nil || e.ahead
	e.mu.Unlock()
	s := e.meter.status(time.Now())
	s.Queue, s.QueueCap, s.Ahead, s.Pressure = queue, e.o.Queue, ahead, e.pressure.get()
	return s
}

// Options returns the engine's settings.
func (e *Engine) Options() Options { return e.o }

// WaitLoaded returns when the model is loaded, or why it is not.
func (e *Engine) WaitLoaded(ctx context.Context) error {
	return e.exclusive(ctx, func(context.Context, *worker) error { return nil })
}
