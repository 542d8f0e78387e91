package cpu

import "fmt"

// Kernels says which implementation of the operations a device runs.
type Kernels uint8

const (
	// Fastest is the best that the processor can run.
	Fastest Kernels = iota
	// Portable is the plain Go of this package.
	Portable
	// AVX2 needs an amd64 processor with AVX2 and FMA.
	AVX2
	// AVX512 needs AVX-512 with its instructions for neural networks (VNNI) too.
	AVX512
	// AMX needs what AVX512 does and AMX with its products of bytes, and that the
	// system lets the process use its tiles.
	AMX
)

func (k Kernels) String() string {
	switch k {
	case Fastest:
		return "fastest"
	case Portable:
		return "portable"
	case AVX2:
		return "AVX2"
	case AVX512:
		return "AVX-512"
	case AMX:
		return "AMX"
	}
	return fmt.Sprintf("kernels %d", uint8(k))
}

// Available reports whether this processor can run them.
func (k Kernels) Available() bool {
	return k == Fastest || k == Portable || fastKernels(k) != nil
}

// kernels returns the implementation. It panics where the processor can't run
// it: who names one must ask.
func (k Kernels) kernels() *kernels {
	if k == Fastest {
		for _, best := range []Kernels{AMX, AVX512, AVX2} {
			if f := fastKernels(best); f != nil {
				return f
			}
		}
		return &plain
	}
	if k == Portable {
		return &plain
	}
	f := fastKernels(k)
	if f == nil {
		panic(fmt.Sprintf("cpu: this processor can't run the %v kernels", k))
	}
	return f
}

// kernels are the operations of which there may be fast twins. The functions of
// this package that bear their names state the formulas. Which one runs follows
// from the processor and from widths, never from how many rows a call has.
type kernels struct {
	rmsNorm    func(r Rounding, y, x, w []float32, eps float32)
	gatedNorm  func(r Rounding, y, x, z, w []float32, eps float32)
	unitNorm   func(r Rounding, x []float32, width int, scale float32)
	swiGLU     func(r Rounding, gate, up []float32)
	outputGate func(r Rounding, x, gate []float32)
	add        func(r Rounding, h, y []float32)
	addScaled  func(y, w, x []float32, stride int) // rows of x lie stride values apart
	round      func(r Rounding, x []float32)
	unpack     func(r Rounding, dst []float32, src []byte)
	pack       func(r Rounding, dst []byte, src []float32)
	conv       func(r Rounding, y, x, w []float32, rows, channels, lo, hi int)
	deltaStep  func(r Rounding, o, s, q, k, v []float32, decay, beta float32)
	deltaChunk func(r Rounding, c *chunkScratch, s []float32, n, keyDim, valueDim int)
	// turnKeys sees a block of keys in w before foldBlock takes it in.
	turnKeys  func(w *workerScratch, n, dim int)
	foldBlock func(w *workerScratch, n int, heads headRows, parts []float32, scale float32)

	argmax func(logits []float32) int32
	read   func(b []byte) uint32 // all of b

	// integer are the products of 16-bit activations; nil where matrices are
	// multiplied in float32.
	integer *integerProducts
}

var plain = kernels{
	rmsNorm:    RMSNorm,
	gatedNorm:  GatedNorm,
	unitNorm:   UnitNorm,
	swiGLU:     SwiGLU,
	outputGate: OutputGate,
	add:        Add,
	addScaled:  addScaled,
	round:      Rounding.values,
	unpack:     Rounding.unpack,
	pack:       Rounding.pack,
	conv:       Conv,
	deltaStep:  DeltaStep,
	deltaChunk: plainDeltaChunk,
	turnKeys:   func(*workerScratch, int, int) {},
	foldBlock:  foldPlain,
	argmax:     Argmax,
	read:       readPlain,
}
