package main

import (
	"golang.org/x/sys/unix"

	"calla/core/engine"
)

// The levels of kern.memorystatus_vm_pressure_level.
const (
	darwinWarning  = 2
	darwinCritical = 4
)

// memoryPressure asks the kernel, which knows what it compresses and swaps.
func memoryPressure() engine.Pressure {
	level, err := unix.SysctlUint32("kern.memorystatus_vm_pressure_level")
	switch {
	case err != nil || level < darwinWarning:
		return engine.NoPressure
	case level < darwinCritical:
		return engine.LowMemory
	}
	return engine.NoMemory
}
