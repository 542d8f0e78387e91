package main

import "golang.org/x/sys/unix"

// systemName returns the system with its release, and the machine's model.
func systemName() (system, machine string) {
	release, _ := unix.Sysctl("kern.osproductversion")
	machine, _ = unix.Sysctl("hw.model")
	return "macOS " + release, machine
}
