package bench

import (
	"context"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// readCounters asks the kernel for processor time and pmset, which every Mac
// has, for heat and for low-power mode. What threads wait is not counted there.
func readCounters() counters {
	c := counters{cpu: unknown, waited: unknown, throttled: unknown, stolen: unknown, hot: unknown}
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err == nil {
		c.cpu = time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	c.slow = slowMac(pmset("-g", "therm"), pmset("-g"))
	return c
}

// pmset returns what pmset prints, or nothing where it fails.
func pmset(args ...string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "/usr/bin/pmset", args...).Output()
	if err != nil {
		return ""
	}
	return string(out)
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
