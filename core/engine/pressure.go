package engine

import (
	"fmt"
	"sync/atomic"
)

// Pressure says how short of memory the machine is.
type Pressure int32

const (
	// NoPressure: there is enough.
	NoPressure Pressure = iota
	// LowMemory: the states of the prefix cache are given back, and none are
	// kept while it lasts.
	LowMemory
	// NoMemory: new requests are refused as well. Those that wait or run go on.
	NoMemory
)

func (p Pressure) String() string {
	switch p {
	case LowMemory:
		return "low"
	case NoMemory:
		return "none left"
	}
	return "enough"
}

// ErrNoMemory refuses a request while the machine is out of memory. To callers
// it is as a queue that is full: later there may be room.
var ErrNoMemory = fmt.Errorf("engine: the machine is out of memory: %w", ErrQueueFull)

// pressure is what was last told.
type pressure struct{ level atomic.Int32 }

func (p *pressure) get() Pressure { return Pressure(p.level.Load()) }

// SetPressure tells the engine how short of memory the machine is. It acts on
// it between two steps at the latest.
func (e *Engine) SetPressure(p Pressure) {
	if was := Pressure(e.pressure.level.Swap(int32(p))); was == p {
		return
	}
	e.o.Log.Info("engine: memory of the machine", "is", p)
	e.notify()
}

// keeps reports whether evaluated prompts are kept for later ones.
func (w *worker) keeps() bool { return w.o.CacheEntries > 0 && w.pressure.get() == NoPressure }

// relieve gives the prefix cache back where the machine is short of memory.
func (w *worker) relieve() {
	if w.model == nil || w.pressure.get() == NoPressure || w.cache.lru.Len() == 0 {
		return
	}
	w.cache.drop()
	w.meter.cached(w.cache)
}
