package main

import (
	"errors"
	"fmt"
	"testing"

	"calla/app/supervise"
	"calla/core/engine"
	"calla/core/server"
)

func TestStatus(t *testing.T) {
	cause := errors.New("x")
	for _, tt := range []struct {
		name string
		err  error
		want int
	}{
		{"anything else", cause, 1},
		{"a setting", usageError{cause}, supervise.ExitUsage},
		{"the model", modelError{cause}, supervise.ExitModel},
		{"the model's memory, wrapped", fmt.Errorf("y: %w", &engine.MemoryError{}), supervise.ExitMemory},
		{"the port", &server.BusyError{}, supervise.ExitPort},
		{"no display", noDisplay{cause}, exitNoDisplay},
	} {
		if got := status(tt.err); got != tt.want {
			t.Errorf("%s: status %d, want %d", tt.name, got, tt.want)
		}
	}
}
