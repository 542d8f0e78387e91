package cpu

import "syscall"

// requestTiles asks the kernel for the tile registers of this process: Linux
// keeps their room in the stacks of signals from those that don't ask.
func requestTiles() bool {
	const requestPermission, tileData = 0x1023, 18 // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
	_, _, e := syscall.RawSyscall(syscall.SYS_ARCH_PRCTL, requestPermission, tileData, 0)
	return e == 0
}
