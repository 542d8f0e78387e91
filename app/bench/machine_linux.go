package bench

import (
	"bytes"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func readCounters() counters { return countersOf(os.DirFS("/"), processorTime()) }

// clockTick is the unit of /proc/stat, the same on every Linux that Go runs on.
const clockTick = time.Second / 100

// countersOf reads the machine's files.
func countersOf(root fs.FS, cpu time.Duration) counters {
	c := counters{cpu: cpu, waited: waited(root), throttled: throttled(root), stolen: unknown}
	text, _ := fs.ReadFile(root, "proc/stat") // unreadable: not known
	line, _, _ := strings.Cut(string(text), "\n")
	// cpu user nice system idle iowait irq softirq steal
	if f := strings.Fields(line); len(f) > 8 && f[0] == "cpu" {
		if n, err := strconv.ParseInt(f[8], 10, 64); err == nil {
			c.stolen = time.Duration(n) * clockTick
		}
	}
	return c
}

// waited returns how long the threads of this process, of those that live,
// were ready to run and did not.
func waited(root fs.FS) time.Duration {
	threads, _ := fs.Glob(root, "proc/self/task/*/schedstat")
	all := time.Duration(unknown)
	for _, name := range threads {
		text, err := fs.ReadFile(root, name)
		// nanoseconds run, nanoseconds waited, times run
		if f := bytes.Fields(text); err == nil && len(f) == 3 {
			if n, err := strconv.ParseInt(string(f[1]), 10, 64); err == nil {
				all = max(all, 0) + time.Duration(n)
			}
		}
	}
	return all
}

// throttled returns for how long the control groups of this process, of either
// version, were over their quota.
func throttled(root fs.FS) time.Duration {
	groups, _ := fs.ReadFile(root, "proc/self/cgroup")
	all := time.Duration(unknown)
	for line := range strings.Lines(string(groups)) {
		// hierarchy:controllers:path, with no controllers in version 2.
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(f) != 3 {
			continue
		}
		switch {
		case f[1] == "":
			all = sum(all, heldBack(root, "sys/fs/cgroup", f[2], "throttled_usec", time.Microsecond))
		case strings.Contains(","+f[1]+",", ",cpu,"):
			all = sum(all, heldBack(root, path.Join("sys/fs/cgroup", f[1]), f[2], "throttled_time", time.Nanosecond))
		}
	}
	return all
}

// heldBack adds up an entry of the group and of all that hold it: each may have
// a quota.
func heldBack(root fs.FS, mount, group, entry string, unit time.Duration) time.Duration {
	all := time.Duration(unknown)
	for dir := path.Clean("/" + group); ; dir = path.Dir(dir) {
		text, _ := fs.ReadFile(root, path.Join(mount, dir, "cpu.stat"))
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) == 2 && f[0] == entry {
				if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					all = sum(all, time.Duration(n)*unit)
				}
			}
		}
		if dir == "/" {
			return all
		}
	}
}

func sum(a, b time.Duration) time.Duration {
	if a == unknown || b == unknown {
		return max(a, b)
	}
	return a + b
}

// PeakMemory returns the most memory that this process had at once, files that
// it mapped included, or 0 where that can't be told.
func PeakMemory() int64 {
	text, err := os.ReadFile(filepath.Join("/proc/self", "status"))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return unknown
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
