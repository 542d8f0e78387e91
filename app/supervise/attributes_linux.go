package supervise

import "syscall"

// deathSignal is what a child gets from the kernel when the thread that started
// it ends, even where it hangs and does not see its pipe's end.
var deathSignal = syscall.SIGKILL

// attributes puts a child into a group of its own, so that a Ctrl-C in a
// terminal does not reach it before its parent.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: deathSignal}
}
