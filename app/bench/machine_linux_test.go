package bench

import (
	"testing"
	"testing/fstest"
	"time"
)

func TestCountersOf(t *testing.T) {
	file := func(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s)} }
	const quota = "nr_periods 9\nnr_throttled 2\nthrottled_usec 1500\n"
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want counters
	}{
		{"nothing to read", fstest.MapFS{}, counters{waited: unknown, throttled: unknown, stolen: unknown}},
		{"threads", fstest.MapFS{
			"proc/self/task/7/schedstat": file("5000 2000 12\n"),
			"proc/self/task/8/schedstat": file("9000 300 3\n"),
			"proc/self/task/9/schedstat": file("damaged\n"),
		}, counters{waited: 2300, throttled: unknown, stolen: unknown}},
		{"control groups of version 2, each with a quota", fstest.MapFS{
			"proc/self/cgroup":             file("0::/a/b\n"),
			"sys/fs/cgroup/a/b/cpu.stat":   file(quota),
			"sys/fs/cgroup/a/cpu.stat":     file("throttled_usec 500\n"),
			"sys/fs/cgroup/cpu.stat":       file("usage_usec 12345\n"),
			"sys/fs/cgroup/a/other/b.stat": file(quota),
		}, counters{waited: unknown, throttled: 2 * time.Millisecond, stolen: unknown}},
		{"control groups of version 1", fstest.MapFS{
			"proc/self/cgroup":                   file("4:memory:/x\n2:cpu,cpuacct:/y\n"),
			"sys/fs/cgroup/cpu,cpuacct/cpu.stat": file("throttled_time 700\n"), // a container's own
			"sys/fs/cgroup/memory/x/cpu.stat":    file("throttled_time 9\n"),
		}, counters{waited: unknown, throttled: 700, stolen: unknown}},
		{"the hypervisor", fstest.MapFS{
			"proc/stat": file("cpu  1 2 3 4 5 6 7 25 9 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n"),
		}, counters{waited: unknown, throttled: unknown, stolen: 250 * time.Millisecond}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := countersOf(tt.root, 0); got != tt.want {
				t.Errorf("countersOf = %+v, want %+v", got, tt.want)
			}
		})
	}
}

// What is read on the machine that runs the tests only grows.
func TestReadCounters(t *testing.T) {
	before := readCounters()
	after := readCounters()
	if before.cpu <= 0 || after.cpu < before.cpu || PeakMemory() < 1<<20 {
		t.Errorf("counters %+v, then %+v, a peak of %d bytes", before, after, PeakMemory())
	}
}
