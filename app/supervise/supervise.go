// Package supervise runs the engine as a child process.
//
// What is promised:
//   - there is at most one child, and it ends with this process, however this
//     process ends: the child reads a pipe that only this process holds, and
//     leaves at its end (see Attach); Linux kills it besides;
//   - only the child's own word counts: it tells its address over a pipe, and
//     what answers at that address is believed if it repeats a secret that the
//     child alone was given. Another program is neither adopted nor ended;
//   - a child that crashes, hangs or falls silent is started again after
//     growing waits, and given up after a few; what another start can't mend
//     is not tried again;
//   - a stop is in order where the child does its part, and by force where not.
//
// What the status says beyond that belongs to others, as does how a crash is
// shown.
package supervise

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// Cause is the kind of reason for which a child ended.
type Cause string

// The causes. All but Crash stay as they are, however often the engine is
// started.
const (
	Asked  Cause = ""
	Crash  Cause = "crash"
	Usage  Cause = "usage"
	Port   Cause = "port"
	Model  Cause = "model"
	Memory Cause = "memory"
)

// Exit statuses by which the engine tells a cause. They keep clear of 1 and of
// 2, with which Go ends a program that panics.
const (
	ExitUsage  = 64
	ExitModel  = 66
	ExitMemory = 71
	ExitPort   = 73
)

var causes = map[int]Cause{ExitUsage: Usage, ExitModel: Model, ExitMemory: Memory, ExitPort: Port}

// Event is what happens to the engine.
type Event interface{ event() }

// Events. A run is any number of Listening, Observed, Crashed and Relaunched,
// and one Ended.
type (
	// Listening comes when the child has bound its address.
	Listening struct{ URL string }
	// Observed is the body of a status that is the child's.
	Observed struct{ Body []byte }
	// Crashed is a child that ended by itself and is started again, after a
	// wait, for the Try-th time of Of.
	Crashed struct {
		Reason  string
		Try, Of int
	}
	// Relaunched is the end of that wait.
	Relaunched struct{}
	// Ended says that no child is left, and none will come.
	Ended struct {
		Cause  Cause
		Reason string
	}
)

func (Listening) event()  {}
func (Observed) event()   {}
func (Crashed) event()    {}
func (Relaunched) event() {}
func (Ended) event()      {}

// Policy says how patient the supervisor is.
type Policy struct {
	Bind    time.Duration   // for the child to tell its address
	Poll    time.Duration   // between two readings of the status
	Misses  int             // readings in a row that may fail
	Hangs   int             // readings in a row that may say stuck or failed
	Grace   time.Duration   // for a stop in order, before force
	Soon    time.Duration   // the same, when this program ends
	Waits   []time.Duration // before each restart
	Healthy time.Duration   // a run this long makes the next crash a first one
}

// Default is the policy of the app.
var Default = Policy{
	Bind: time.Minute, Poll: time.Second, Misses: 20, Hangs: 10,
	Grace: 10 * time.Second, Soon: 1500 * time.Millisecond,
	Waits:   []time.Duration{time.Second, 2 * time.Second, 5 * time.Second, 15 * time.Second},
	Healthy: time.Minute,
}

// Launch is how a child is started.
type Launch struct {
	Path string
	Args []string
	Env  []string // nil is this process's own
	Key  string   // which requests for the status carry, if not empty
}

// Engine supervises one child at a time.
type Engine struct {
	policy Policy
	log    io.Writer
	tell   func(Event)

	mu      sync.Mutex
	stops   chan time.Duration // graces, the newest counts
	starts  chan Launch        // instead of a wait
	waiting bool               // to start a child again
	done    chan struct{}
}

// ErrRunning is a start while a run is not over.
var ErrRunning = errors.New("supervise: the engine is running already")

// New makes an Engine that is off. What the child writes to its standard error
// goes to log; tell is called with one event at a time and must not block for
// long.
func New(p Policy, log io.Writer, tell func(Event)) *Engine {
	return &Engine{policy: p, log: log, tell: tell}
}

// Start begins a run. It returns at once; events tell the rest. A run that
// waits to start its child again waits no longer, and begins to count anew.
func (e *Engine) Start(l Launch) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.done != nil {
		select {
		case <-e.done:
		default:
			if e.waiting {
				e.waiting = false
				e.starts <- l
				return nil
			}
			return ErrRunning
		}
	}
	e.stops, e.starts, e.done = make(chan time.Duration, 1), make(chan Launch, 1), make(chan struct{})
	r := &run{Engine: e, launch: l, stops: e.stops, starts: e.starts}
	go r.loop(e.done)
	return nil
}

// Stop asks the run to end, soon where this program is about to. Ended tells
// when it has.
func (e *Engine) Stop(soon bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.stops == nil {
		return
	}
	grace := e.policy.Grace
	if soon {
		grace = e.policy.Soon
	}
	select {
	case <-e.stops: // an earlier one that was not looked at yet
	default:
	}
	e.stops <- grace
}

// Wait returns when no child is left, or ctx ends.
func (e *Engine) Wait(ctx context.Context) error {
	e.mu.Lock()
	done := e.done
	e.mu.Unlock()
	if done == nil {
		return nil
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
