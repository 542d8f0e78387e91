//go:build !linux && !darwin

package bench

// readCounters knows nothing of other systems.
func readCounters() counters {
	return counters{cpu: unknown, waited: unknown, throttled: unknown, stolen: unknown}
}

// PeakMemory returns the most memory that this process had at once, files that
// it mapped included, or 0 where that can't be told.
func PeakMemory() int64 { return 0 }
