//go:build cgo

package apple

// Open starts a driver on this Mac's GPU. It says what the GPU or the system lacks
// where it can't be used.
func Open(o Options) (*Driver, error) { return newDriver(shim{}, o) }
