package main

import (
	"testing"

	"calla/core/engine"
)

func TestPressureOf(t *testing.T) {
	for _, tt := range []struct {
		name, meminfo string
		want          engine.Pressure
	}{
		{"enough", "MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    500 kB\n", engine.NoPressure},
		{"just enough", "MemTotal: 1000 kB\nMemAvailable: 50 kB\n", engine.NoPressure},
		{"low", "MemTotal: 1000 kB\nMemAvailable: 49 kB\n", engine.LowMemory},
		{"just low", "MemTotal: 1000 kB\nMemAvailable: 20 kB\n", engine.LowMemory},
		{"none left", "MemTotal: 1000 kB\nMemAvailable: 19 kB\n", engine.NoMemory},
		{"an old kernel", "MemTotal: 1000 kB\nMemFree: 1 kB\n", engine.NoPressure},
		{"nothing", "", engine.NoPressure},
		{"no numbers", "MemTotal: x kB\nMemAvailable: y kB\n", engine.NoPressure},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := pressureOf(tt.meminfo); got != tt.want {
				t.Errorf("pressureOf = %v, want %v", got, tt.want)
			}
		})
	}
}
