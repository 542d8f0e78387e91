//go:build !linux && !darwin

package main

import "calla/core/engine"

// memoryPressure can't tell.
func memoryPressure() engine.Pressure { return engine.NoPressure }
