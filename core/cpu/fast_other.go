//go:build !amd64

package cpu

// fastKernels returns nil: this processor has the plain ones.
func fastKernels(Kernels) *kernels { return nil }

// pause is some nanoseconds between two looks at what another goroutine will
// change.
func pause() {
	for range 30 {
	}
}
