package checkpoint

import (
	"fmt"
	"iter"

	"calla/core/tensor"
)

// Part is the role that a weight, or a quantised matrix of three weights, plays
// in the model.
type Part uint8

// The parts of the model. The first three exist once, the others in a layer.
const (
	Embed Part = iota
	Head
	FinalNorm

	InputNorm
	PostNorm

	DeltaQKV
	DeltaZ
	DeltaB
	DeltaA
	DeltaConv
	DeltaALog
	DeltaDT
	DeltaNorm
	DeltaOut

	AttentionQ
	AttentionK
	AttentionV
	AttentionQNorm
	AttentionKNorm
	AttentionOut

	Router
	ExpertGate
	ExpertUp
	ExpertDown
	SharedMix
	SharedGate
	SharedUp
	SharedDown

	numParts
)

// holder says where in the model a part exists.
type holder uint8

const (
	model holder = iota // once
	everyLayer
	deltaLayer
	attentionLayer
)

// quantGroup is the number of neighbouring weights in a quantisation group.
const quantGroup = 64

// extent is one axis of a part.
type extent func(c Config) int

func one(Config) int           { return 1 }
func vocab(c Config) int       { return c.Vocab }
func hidden(c Config) int      { return c.Hidden }
func convDim(c Config) int     { return c.ConvDim() }
func convTaps(c Config) int    { return c.ConvTaps }
func valueHeads(c Config) int  { return c.DeltaValueHeads }
func valueDim(c Config) int    { return c.DeltaValueDim }
func valueWidth(c Config) int  { return c.DeltaValueHeads * c.DeltaValueDim }
func headDim(c Config) int     { return c.HeadDim }
func headWidth(c Config) int   { return c.Heads * c.HeadDim }
func gatedWidth(c Config) int  { return 2 * c.Heads * c.HeadDim }
func kvWidth(c Config) int     { return c.KVHeads * c.HeadDim }
func experts(c Config) int     { return c.Experts }
func expertWidth(c Config) int { return c.ExpertDim }
func sharedWidth(c Config) int { return c.SharedExpertDim }

// parts is the table of all tensors: each part's name, where it exists, the
// bits of its codes (0 for one plain tensor), and its shape, which for a matrix
// is [.., out, in]. Plain tensors are bfloat16; those marked orF32 are float32
// in what newer converters write.
var parts = [numParts]struct {
	name   string
	holder holder
	bits   int
	shape  []extent
	orF32  bool
}{
	Embed:     {"model.embed_tokens", model, 4, []extent{vocab, hidden}, false},
	Head:      {"lm_head", model, 4, []extent{vocab, hidden}, false},
	FinalNorm: {"model.norm.weight", model, 0, []extent{hidden}, false},

	InputNorm: {"input_layernorm.weight", everyLayer, 0, []extent{hidden}, false},
	PostNorm:  {"post_attention_layernorm.weight", everyLayer, 0, []extent{hidden}, false},

	DeltaQKV:  {"linear_attn.in_proj_qkv", deltaLayer, 4, []extent{convDim, hidden}, false},
	DeltaZ:    {"linear_attn.in_proj_z", deltaLayer, 4, []extent{valueWidth, hidden}, false},
	DeltaB:    {"linear_attn.in_proj_b", deltaLayer, 4, []extent{valueHeads, hidden}, false},
	DeltaA:    {"linear_attn.in_proj_a", deltaLayer, 4, []extent{valueHeads, hidden}, false},
	DeltaConv: {"linear_attn.conv1d.weight", deltaLayer, 0, []extent{convDim, convTaps, one}, false},
	DeltaALog: {"linear_attn.A_log", deltaLayer, 0, []extent{valueHeads}, true},
	DeltaDT:   {"linear_attn.dt_bias", deltaLayer, 0, []extent{valueHeads}, false},
	DeltaNorm: {"linear_attn.norm.weight", deltaLayer, 0, []extent{valueDim}, true},
	DeltaOut:  {"linear_attn.out_proj", deltaLayer, 4, []extent{hidden, valueWidth}, false},

	AttentionQ:     {"self_attn.q_proj", attentionLayer, 4, []extent{gatedWidth, hidden}, false},
	AttentionK:     {"self_attn.k_proj", attentionLayer, 4, []extent{kvWidth, hidden}, false},
	AttentionV:     {"self_attn.v_proj", attentionLayer, 4, []extent{kvWidth, hidden}, false},
	AttentionQNorm: {"self_attn.q_norm.weight", attentionLayer, 0, []extent{headDim}, false},
	AttentionKNorm: {"self_attn.k_norm.weight", attentionLayer, 0, []extent{headDim}, false},
	AttentionOut:   {"self_attn.o_proj", attentionLayer, 4, []extent{hidden, headWidth}, false},

	Router:     {"mlp.gate", everyLayer, 8, []extent{experts, hidden}, false},
	ExpertGate: {"mlp.switch_mlp.gate_proj", everyLayer, 4, []extent{experts, expertWidth, hidden}, false},
	ExpertUp:   {"mlp.switch_mlp.up_proj", everyLayer, 4, []extent{experts, expertWidth, hidden}, false},
	ExpertDown: {"mlp.switch_mlp.down_proj", everyLayer, 4, []extent{experts, hidden, expertWidth}, false},
	SharedMix:  {"mlp.shared_expert_gate", everyLayer, 8, []extent{one, hidden}, false},
	SharedGate: {"mlp.shared_expert.gate_proj", everyLayer, 4, []extent{sharedWidth, hidden}, false},
	SharedUp:   {"mlp.shared_expert.up_proj", everyLayer, 4, []extent{sharedWidth, hidden}, false},
	SharedDown: {"mlp.shared_expert.down_proj", everyLayer, 4, []extent{hidden, sharedWidth}, false},
}

// Name returns the name of the part in a checkpoint: of its tensor, or of its
// quantised matrix, whose tensors add ".weight", ".scales" and ".biases". The
// layer does not matter for a part that exists once.
func (p Part) Name(layer int) string {
	if parts[p].holder == model {
		return "language_model." + parts[p].name
	}
	return fmt.Sprintf("language_model.model.layers.%d.%s", layer, parts[p].name)
}

// Shape returns the extents of the part, of a quantised matrix those of its
// values: [out, in], or [experts, out, in].
func (p Part) Shape(c Config) tensor.Shape {
	s := make(tensor.Shape, len(parts[p].shape))
	for i, axis := range parts[p].shape {
		s[i] = axis(c)
	}
	return s
}

// Bits returns the bits of a quantised matrix's codes, and 0 for a plain
// tensor.
func (p Part) Bits() int { return parts[p].bits }

// in reports whether a layer has the part.
func (p Part) in(c Config, layer int) bool {
	switch parts[p].holder {
	case everyLayer:
		return true
	case deltaLayer:
		return !c.FullAttention(layer)
	case attentionLayer:
		return c.FullAttention(layer)
	}
	return false
}

// Tensor is one tensor that a checkpoint must have.
type Tensor struct {
	Name   string
	Part   Part
	DTypes []tensor.DType // the published type first
	Shape  tensor.Shape
}

var (
	codes   = []tensor.DType{tensor.U32}
	plain   = []tensor.DType{tensor.BF16}
	plainOr = []tensor.DType{tensor.BF16, tensor.F32}
)

// Tensors yields all tensors that a checkpoint of the configuration must have.
func (c Config) Tensors() iter.Seq[Tensor] {
	return func(yield func(Tensor) bool) {
		for p := range numParts {
			if parts[p].holder == model && !p.tensors(c, 0, yield) {
				return
			}
		}
		for layer := range c.Layers {
			for p := range numParts {
				if p.in(c, layer) && !p.tensors(c, layer, yield) {
					return
				}
			}
		}
	}
}

// Bytes returns the bytes of all tensors of the configuration, each in the
// smallest element type that it may have.
func (c Config) Bytes() int64 {
	var sum int64
	for t := range c.Tensors() {
		n, _ := t.Shape.Elements()
		sum += n * int64(t.DTypes[0].Size())
	}
	return sum
}

// tensors yields the part's tensors; it reports whether yield wants more.
func (p Part) tensors(c Config, layer int, yield func(Tensor) bool) bool {
	name, extents := p.Name(layer), p.Shape(c)
	if p.Bits() == 0 {
		dtypes := plain
		if parts[p].orF32 {
			dtypes = plainOr
		}
		return yield(Tensor{name, p, dtypes, extents})
	}
	out, in := extents[:len(extents)-1], extents[len(extents)-1]
	row := func(n int) tensor.Shape { return append(out[:len(out):len(out)], n) }
	return yield(Tensor{name + ".weight", p, codes, row(in * p.Bits() / 32)}) &&
		yield(Tensor{name + ".scales", p, plain, row(in / quantGroup)}) &&
		yield(Tensor{name + ".biases", p, plain, row(in / quantGroup)})
}
