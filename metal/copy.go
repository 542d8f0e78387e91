package metal

// CopyKernel is the kernel of Encoder.Copy. No model is run with it.
var CopyKernel = named("copy")

// copyEach is how many values of copyUnit bytes a thread copies.
const copyEach, copyUnit = 8, 16

// Copy copies bytes, a multiple of copyUnit, from one buffer to another.
func (e *Encoder) Copy(from, to Binding, bytes int) {
	count := bytes / copyUnit
	e.dispatch(CopyKernel, launch{grid: grid(ceil(count, copyEach*256)), threads: 256}, copyArgs{u32(count), copyEach}, from, to)
}
