//go:build !(darwin || freebsd || linux)

package emulator

import (
	"fmt"
	"runtime"
)

// Open says that this system has no shared libraries that Go could load.
func Open(path string) (Machine, error) {
	return nil, fmt.Errorf("emulator: %s can't be loaded on %s", path, runtime.GOOS)
}
