package cuda

// Pointer is an address as kernels see it.
type Pointer uint64

// maxParams is the most parameters of a kernel.
const maxParams = 31
