//go:build !linux && !darwin

package cpu

// machineMemory can't tell.
func machineMemory() int64 { return 0 }
