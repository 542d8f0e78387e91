package main

import (
	"runtime"
	"strings"
	"testing"
)

// TestMetalElsewhere says why there is no Metal, and auto does without.
func TestMetalElsewhere(t *testing.T) {
	if runtime.GOOS == "darwin" {
		t.Skip("a Mac")
	}
	s := settings{backend: "metal"}
	if _, err := s.openDevice(); err == nil || !strings.Contains(err.Error(), "only Macs have Metal") {
		t.Errorf("error %v, want why not", err)
	}
	s.backend = "auto"
	d, err := s.openDevice()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !strings.HasPrefix(d.Name(), "CPU") {
		t.Errorf("auto is %s, want the CPU", d.Name())
	}
}
