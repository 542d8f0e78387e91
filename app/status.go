package main

import (
	"errors"

	"calla/app/supervise"
	"calla/core/engine"
	"calla/core/server"
)

// usageError is a flag, variable or setting that is wrong.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// modelError is a checkpoint that is missing, damaged or not the one wanted.
type modelError struct{ error }

func (e modelError) Unwrap() error { return e.error }

// status is the exit status by which the menu and scripts tell what went
// wrong; 1 is anything else.
func status(err error) int {
	var (
		usage  usageError
		model  modelError
		memory *engine.MemoryError
		busy   *server.BusyError
		blind  noDisplay
	)
	switch {
	case errors.As(err, &blind):
		return exitNoDisplay
	case errors.As(err, &busy):
		return supervise.ExitPort
	case errors.As(err, &memory):
		return supervise.ExitMemory
	case errors.As(err, &model):
		return supervise.ExitModel
	case errors.As(err, &usage):
		return supervise.ExitUsage
	}
	return 1
}
