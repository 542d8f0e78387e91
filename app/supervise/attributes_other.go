//go:build unix && !linux

package supervise

import "syscall"

// attributes puts a child into a group of its own, so that a Ctrl-C in a
// terminal does not reach it before its parent.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
