//go:build amd64 && !linux

package cpu

// requestTiles reports that this system isn't known to lend tile registers.
func requestTiles() bool { return false }
