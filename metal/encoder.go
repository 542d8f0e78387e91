package metal

import "slices"

// Encoder turns operations into dispatches. Each has a method named after its
// kernel; shapes and formulas stand at the kernel.
type Encoder struct {
	list List
	// tensor says that prefill's products go to matrix units.
	tensor bool
	// free says that the next dispatch need not wait for those before it.
	free bool
}

// List returns what was encoded since the last Reset.
func (e *Encoder) List() *List { return &e.list }

// Reset empties the list and keeps its memory.
func (e *Encoder) Reset() { e.list.Dispatches = e.list.Dispatches[:0] }

// Beside says that the next dispatch reads nothing that dispatches since the
// last barrier write, and writes nothing that they touch.
func (e *Encoder) Beside() { e.free = true }

// matrixUnits are the kernels that have a twin on matrix units, tensor_...
var matrixUnits = []string{"matmul", "matmul_add", "matmul_swiglu", "expert_gate_up_rows", "expert_down_rows"}

// product returns the kernel of that name for products on this device.
func (e *Encoder) product(name string) Kernel {
	if e.tensor && slices.Contains(matrixUnits, name) {
		return named("tensor_" + name)
	}
	return named(name)
}

// launch is the size of a dispatch.
type launch struct {
	grid    [3]uint32
	threads int
	shared  int // bytes of threadgroup memory
}

func (e *Encoder) dispatch(kernel Kernel, l launch, args any, buffers ...Binding) {
	e.list.Dispatches = append(e.list.Dispatches, Dispatch{
		Kernel: kernel, Args: argBytes(args), Buffers: buffers,
		Grid: l.grid, Threads: uint32(l.threads), Shared: uint32(l.shared),
		Barrier: !e.free,
	})
	e.free = false
}

// grid is a grid of x threadgroups, or x by y.
func grid(x int, y ...int) [3]uint32 {
	g := [3]uint32{uint32(x), 1, 1}
	if len(y) > 0 {
		g[1] = uint32(y[0])
	}
	return g
}

// ceil returns how many pieces of size make n.
func ceil(n, size int) int { return (n + size - 1) / size }

// align rounds n up to a multiple of size.
func align(n, size int) int { return ceil(n, size) * size }

func u32(n int) uint32 { return uint32(n) }
