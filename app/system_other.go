//go:build !darwin

package main

import "runtime"

// systemName returns the system; nothing more is told of it.
func systemName() (system, machine string) { return runtime.GOOS + "/" + runtime.GOARCH, "" }
