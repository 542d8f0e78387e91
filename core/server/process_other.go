//go:build !linux

package server

import "net/netip"

// processAt knows no process: this system has no file that tells.
func processAt(netip.AddrPort) (pid int, program string) { return 0, "" }
