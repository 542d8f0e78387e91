package metal

import "fmt"

// DeltaShape is the dimensions of a delta net, and where its parts lie in a
// projected row.
type DeltaShape struct {
	KeyHeads, ValueHeads int
	KeyDim, ValueDim     int
	Width                int // of a projected row
	Z, B, A              int // where they start in it; queries, keys and values at 0
	Eps                  float32
}

// Channels returns the channels of the convolution.
func (s DeltaShape) Channels() int { return 2*s.KeyHeads*s.KeyDim + s.values() }

func (s DeltaShape) values() int { return s.ValueHeads * s.ValueDim }

// kernel is a kernel for these heads.
func (s DeltaShape) kernel(name string) Kernel {
	return Kernel{fmt.Sprintf("%s_%d_%d", name, s.KeyDim, s.ValueDim), [4]uint32{u32(s.ValueHeads), u32(s.KeyHeads)}}
}

func (s DeltaShape) args(rows int) deltaArgs {
	return deltaArgs{u32(rows), u32(s.Width), u32(s.Z), u32(s.B), u32(s.A), s.Eps}
}

// DeltaWeights are a delta net's vectors.
type DeltaWeights struct{ Taps, Rate, DT, Norm Binding }

// DeltaStep makes y from one projected row.
func (e *Encoder) DeltaStep(s DeltaShape, w DeltaWeights, projected, convIn, convOut, state, y Binding) {
	e.dispatch(s.kernel("delta_step"), launch{grid: grid(s.ValueHeads), threads: 256}, s.args(1),
		projected, convIn, convOut, w.Taps, w.Rate, w.DT, w.Norm, state, y)
}
