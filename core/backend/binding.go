package backend

import "calla/core/checkpoint"

// Binding says which weight of a checkpoint plays which part, so that a device
// loads weights without knowing their names.
type Binding struct {
	Config checkpoint.Config
	Embed  Quantised // [vocab, hidden]
	Layers []Layer
	Norm   checkpoint.Weight // [hidden]
	Head   Quantised         // [vocab, hidden]
	// Tokens is how many rows of the head are tokens. The rest pads the matrix:
	// it gets no logits, so no device can choose it. 0 is all rows.
	Tokens int
}

// Logits returns how many logits a call makes.
func (b *Binding) Logits() int {
	if b.Tokens == 0 {
		return b.Config.Vocab
	}
	return b.Tokens
}

// Quantised is an affine-quantised matrix [.., Out, In] in quantisation groups
// of 64: value = scale × code + bias. Codes have Bits bits, the lowest first in
// each uint32.
type Quantised struct {
	Weight  checkpoint.Weight // uint32 [.., Out, In×Bits/32]
	Scales  checkpoint.Weight // bfloat16 [.., Out, In/64]
	Biases  checkpoint.Weight // bfloat16 [.., Out, In/64]
	Experts int               // matrices in the stack; 1 for a plain one
	Out, In int
	Bits    int
}

// Layer holds one layer's weights. Delta is set in delta-net layers, Attention
// in full-attention layers.
type Layer struct {
	InputNorm checkpoint.Weight // [hidden]
	Delta     *DeltaNet
	Attention *Attention
	PostNorm  checkpoint.Weight // [hidden]
	MoE       MoE
}

// DeltaNet holds the weights of a Gated DeltaNet.
type DeltaNet struct {
	QKV  Quantised         // [conv dim, hidden]: q heads, k heads, v heads
	Z    Quantised         // [value heads × value dim, hidden]
	B    Quantised         // [value heads, hidden]
	A    Quantised         // [value heads, hidden]
	Conv checkpoint.Weight // [conv dim, taps, 1], the newest row under the last tap
	ALog checkpoint.Weight // [value heads]
	DT   checkpoint.Weight // [value heads]
	Norm checkpoint.Weight // [value dim]
	Out  Quantised         // [hidden, value heads × value dim]
}

// Attention holds the weights of a gated full attention.
type Attention struct {
	Q     Quantised         // [heads × 2 × head dim, hidden]: per head the query, then its gate
	K, V  Quantised         // [KV heads × head dim, hidden]
	QNorm checkpoint.Weight // [head dim]
	KNorm checkpoint.Weight // [head dim]
	Out   Quantised         // [hidden, heads × head dim]
}

// MoE holds the weights of a mixture of experts.
type MoE struct {
	Router     Quantised // [experts, hidden], 8 bits
	Gate, Up   Quantised // stacks of [expert dim, hidden]
	Down       Quantised // stack of [hidden, expert dim]
	SharedMix  Quantised // [1, hidden], 8 bits: how much of the shared expert
	SharedGate Quantised // [shared expert dim, hidden]
	SharedUp   Quantised
	SharedDown Quantised // [hidden, shared expert dim]
}
