//go:build !amd64

package cpu

// fastKernels returns nil: this processor has the plain ones.
func fastKernels(Kernels) *kernels { return nil }
