//go:build !darwin

package checkpoint

import "os"

// noCache does nothing: elsewhere what was read is let go when memory is needed.
func noCache(*os.File) {}
