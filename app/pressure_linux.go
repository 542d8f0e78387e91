package main

import (
	"os"
	"strconv"
	"strings"

	"calla/core/engine"
)

// memoryPressure looks at what the kernel could hand out without swapping.
func memoryPressure() engine.Pressure {
	text, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return engine.NoPressure
	}
	return pressureOf(string(text))
}

// pressureOf reads the text of /proc/meminfo. Less than a twentieth of the
// memory is low, less than a fiftieth is none.
func pressureOf(meminfo string) engine.Pressure {
	total, available := meminfoEntry(meminfo, "MemTotal"), meminfoEntry(meminfo, "MemAvailable")
	switch {
	case total <= 0 || available < 0 || available >= total/20:
		return engine.NoPressure
	case available >= total/50:
		return engine.LowMemory
	}
	return engine.NoMemory
}

// meminfoEntry returns an entry in kB, or -1.
func meminfoEntry(meminfo, name string) int64 {
	for line := range strings.Lines(meminfo) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			if n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
				return n
			}
		}
	}
	return -1
}
