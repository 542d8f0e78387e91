//go:build !darwin || !cgo

package apple

import (
	"errors"
	"runtime"
)

// Open says why there is no Metal here.
func Open(Options) (*Driver, error) {
	if runtime.GOOS != "darwin" {
		return nil, errors.New("metal: only Macs have Metal")
	}
	return nil, errors.New("metal: built without cgo, which Metal needs: scripts/darwin/build builds with it")
}
