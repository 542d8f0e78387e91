package bench

import (
	"time"

	"golang.org/x/sys/unix"
)

// readCounters knows processor time alone: this system does not count what
// threads wait.
func readCounters() counters {
	c := counters{cpu: unknown, waited: unknown, throttled: unknown, stolen: unknown}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err == nil {
		c.cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	return c
}

// PeakMemory returns the most memory that this process had at once, files that
// it mapped included, or 0 where that can't be told.
func PeakMemory() int64 {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss // bytes on this system
}
