package bench

import (
	"fmt"
	"time"

	"calla/app/power"
)

// unknown is a counter that this system does not have.
const unknown = -1

// counters are what the system counts, from some start on, of what may slow a
// run down.
type counters struct {
	cpu       time.Duration // processor time of this process
	waited    time.Duration // of its threads: ready to run, and not run
	throttled time.Duration // its control group was over its quota
	stolen    time.Duration // the hypervisor ran other machines
}

// Watch notices what the machine did to a run. The zero Watch notices nothing.
type Watch struct {
	// Threads is how many compute, 0 where another device does: the processor's
	// cores then hold nothing up.
	Threads int
	// Most is the share of a run for which threads may wait for a core. From
	// AnyWait on they may wait as they like: threads that take turns with others of
	// the same process may wait for more than the whole time.
	Most float64

	read      func() counters
	condition func() power.Condition
	now       func() time.Time
}

// NewWatch returns a Watch of a machine, the one that the program runs on.
func NewWatch(threads int, most float64, m power.Machine) *Watch {
	return &Watch{Threads: threads, Most: most, read: readCounters, condition: m.Condition, now: time.Now}
}

// AnyWait is the share from which waits are not looked at.
const AnyWait = 1

// leastBusy is the share of a run in which threads must have run on a core,
// where the system does not count how long they waited for one. Threads that
// compute also wait for each other and for memory to be shared out.
const leastBusy = 0.5

// begin starts to watch a run. The function that it returns ends that, and says
// what disturbed the run, and what to do about it; nothing where nothing did.
func (w *Watch) begin() (end func() string) {
	if w.read == nil {
		return func() string { return "" }
	}
	w.condition() // heat is what it sees from one look to the next
	before, start := w.read(), w.now()
	return func() string {
		took := w.now().Sub(start)
		if why := hindrance(w.condition()); why != "" {
			return why
		}
		return w.judge(before, w.read(), took)
	}
}

// hindrance says how a machine's condition slows it down, and what to do about
// it, or nothing.
func hindrance(c power.Condition) string {
	switch {
	case c.Thermal == power.Serious || c.Thermal == power.Critical:
		return "the machine slowed down for heat: let it cool, or measure fewer lengths at once"
	case c.LowPower:
		return "the machine saves power: turn its low-power mode off"
	}
	return ""
}

// judge compares the counters around a run.
func (w *Watch) judge(before, after counters, took time.Duration) string {
	share := func(a, b time.Duration, of int) float64 {
		if a == unknown || b == unknown || took <= 0 || of == 0 {
			return 0
		}
		return (b - a).Seconds() / (took.Seconds() * float64(of))
	}
	cores := max(w.Threads, 1)
	switch {
	case share(before.throttled, after.throttled, 1) > 0:
		return "the control group was held to its processor quota: raise cpu.max, or run outside it"
	case w.Most >= AnyWait:
		return ""
	case share(before.stolen, after.stolen, cores) > w.Most:
		return fmt.Sprintf("the hypervisor took more than %.0f %% of the cores for other machines: measure at another time", 100*w.Most)
	case share(before.waited, after.waited, w.Threads) > w.Most:
		return fmt.Sprintf("threads waited for a core for more than %.0f %% of the time: end other programs, or allow more with --max-wait", 100*w.Most)
	case w.Threads > 0 && after.waited == unknown && took > 0 && before.cpu != unknown && share(before.cpu, after.cpu, w.Threads) < leastBusy:
		return fmt.Sprintf("threads ran for less than %.0f %% of the time: end other programs", 100*leastBusy)
	}
	return ""
}
