//go:build !linux

package metal

import (
	"fmt"
	"runtime"
)

// OpenCUDA says that there is no such driver here.
func OpenCUDA(string) (Driver, error) {
	return nil, fmt.Errorf("metal: no NVIDIA GPU is driven on %s", runtime.GOOS)
}
