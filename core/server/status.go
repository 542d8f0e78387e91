package server

import (
	"time"

	"calla/core/engine"
)

// State is what the engine is doing.
type State string

// The states of an engine. Ready, busy and unloaded ones take requests.
const (
	StateLoading  State = "loading"  // weights are being read
	StateReady    State = "ready"    // nothing to do
	StateBusy     State = "busy"     // a request runs
	StateUnloaded State = "unloaded" // idle, weights freed; the next request loads them
	StateStuck    State = "stuck"    // a step takes far too long
	StateStopping State = "stopping"
	StateFailed   State = "failed"
)

func (s State) takesRequests() bool {
	return s == StateReady || s == StateBusy || s == StateUnloaded
}

// EngineStatus is the engine's own word on how it is.
type EngineStatus struct {
	State    State
	Reason   string          // of a state that takes no requests, in words
	Progress engine.Progress // while loading
	LastStep time.Duration   // age of the newest step, while busy or stuck

	Running, Waiting, Capacity int // requests; Capacity bounds the waiting

	MemoryUsed, MemoryNeeded, MemoryLimit int64 // bytes

	CacheEntries int
	CacheBytes   int64

	// Tokens a second at this moment.
	PrefillRate, DecodeRate float64
}
