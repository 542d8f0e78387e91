package metal

// ExpertsShape is the dimensions of a mixture of experts.
type ExpertsShape struct {
	Hidden, Experts, Chosen int
	ExpertDim, SharedDim    int
	Eps                     float32
}

// Experts is the matrices of a mixture. GateUp has rows of gate and up in turn.
// The routed ones are stacks, one matrix an expert.
type Experts struct {
	Router                   Matrix // [experts, then the shared expert's weight]
	GateUp, Down             Matrix
	SharedGateUp, SharedDown Matrix
}

// downTiles is how many tiles a threadgroup of experts_down makes.
const downTiles = 2

// kernel is a kernel of one row's mixture.
func (s ExpertsShape) kernel(name string) Kernel {
	return Kernel{name, [4]uint32{u32(s.Hidden), u32(s.ExpertDim), u32(s.SharedDim), u32(s.Chosen)}}
}

func (s ExpertsShape) args(each int) expertsArgs {
	return expertsArgs{u32(s.Experts), u32(each), s.Eps}
}

// inner returns the inner values of one row: of the chosen experts, then of the
// shared one.
func (s ExpertsShape) inner() int { return s.Chosen*s.ExpertDim + s.SharedDim }

// ExpertsGateUp makes the inner values of one row's experts.
func (e *Encoder) ExpertsGateUp(s ExpertsShape, x Experts, h, norm, logits, inner Binding) {
	tiles := max(s.ExpertDim, s.SharedDim) / 2
	_, each := projectLaunch(tiles * (s.Chosen + 1))
	e.dispatch(s.kernel("experts_gate_up"), launch{grid: grid(ceil(tiles, 8*each), s.Chosen+1), threads: 256}.normed(s.Hidden), s.args(each),
		h, norm, logits, x.GateUp.At, x.SharedGateUp.At, inner)
}

// ExpertsDown adds the weighted sum of one row's experts to h.
func (e *Encoder) ExpertsDown(s ExpertsShape, x Experts, logits, inner, h Binding) {
	e.dispatch(s.kernel("experts_down"), launch{grid: grid(s.Hidden / tileRows / downTiles), threads: simdWidth * (s.Chosen + 1)}, s.args(downTiles),
		logits, inner, x.Down.At, x.SharedDown.At, h)
}
