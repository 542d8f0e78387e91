package checkpoint

// Config holds the dimensions of a checkpoint's text model.
type Config struct {
	Layers       int
	Hidden       int // width of the residual stream
	Vocab        int // rows of the embedding and of the head, padding included
	MaxPositions int // max_position_embeddings: the longest context, in tokens

	// FullAttentionInterval says which layers attend: layer i does where
	// (i+1) % FullAttentionInterval == 0; the others are delta nets.
	FullAttentionInterval int

	Heads      int // query heads
	KVHeads    int
	HeadDim    int
	RotaryDims int // leading dimensions of a head that rope turns
	RopeTheta  float64

	DeltaKeyHeads   int
	DeltaValueHeads int
	DeltaKeyDim     int
	DeltaValueDim   int
	ConvTaps        int

	Experts         int
	ExpertsPerToken int
	ExpertDim       int // width of a routed expert
	SharedExpertDim int // width of the shared expert
	NormEps         float32
}

// FullAttention reports whether a layer attends; otherwise it is a delta net.
func (c Config) FullAttention(layer int) bool {
	return (layer+1)%c.FullAttentionInterval == 0
}

// ConvDim returns the channels of the causal convolution: q, k and v of all
// delta heads side by side.
func (c Config) ConvDim() int {
	return 2*c.DeltaKeyHeads*c.DeltaKeyDim + c.DeltaValueHeads*c.DeltaValueDim
}

// Published is the configuration of Qwen3.6-35B-A3B.
var Published = Config{
	Layers:                40,
	Hidden:                2048,
	Vocab:                 248320,
	MaxPositions:          262144,
	FullAttentionInterval: 4,
	Heads:                 16,
	KVHeads:               2,
	HeadDim:               256,
	RotaryDims:            64,
	RopeTheta:             10_000_000,
	DeltaKeyHeads:         16,
	DeltaValueHeads:       32,
	DeltaKeyDim:           128,
	DeltaValueDim:         128,
	ConvTaps:              4,
	Experts:               256,
	ExpertsPerToken:       8,
	ExpertDim:             512,
	SharedExpertDim:       512,
	NormEps:               1e-6,
}
