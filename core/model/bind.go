package model

import (
	"fmt"

	"calla/core/backend"
	"calla/core/checkpoint"
)

// Bind says which weights of an open checkpoint play which part. It reads no
// weight and cannot fail: checkpoint.Open has found every tensor with its type
// and shape. Tokens is how many rows of the head are tokens, 0 for all.
func Bind(c *checkpoint.Checkpoint, tokens int) *backend.Binding {
	b := binder{c, c.Config()}
	layers := make([]backend.Layer, b.config.Layers)
	for i := range layers {
		layers[i] = b.layer(i)
	}
	return &backend.Binding{
		Config: b.config,
		Embed:  b.matrix(checkpoint.Embed, 0),
		Layers: layers,
		Norm:   b.plain(checkpoint.FinalNorm, 0),
		Head:   b.matrix(checkpoint.Head, 0),
		Tokens: tokens,
	}
}

type binder struct {
	checkpoint *checkpoint.Checkpoint
	config     checkpoint.Config
}

func (b binder) layer(i int) backend.Layer {
	l := backend.Layer{
		InputNorm: b.plain(checkpoint.InputNorm, i),
		PostNorm:  b.plain(checkpoint.PostNorm, i),
		MoE:       b.moe(i),
	}
	if b.config.FullAttention(i) {
		l.Attention = b.attention(i)
	} else {
		l.Delta = b.delta(i)
	}
	return l
}

func (b binder) delta(i int) *backend.DeltaNet {
	return &backend.DeltaNet{
		QKV:  b.matrix(checkpoint.DeltaQKV, i),
		Z:    b.matrix(checkpoint.DeltaZ, i),
		B:    b.matrix(checkpoint.DeltaB, i),
		A:    b.matrix(checkpoint.DeltaA, i),
		Conv: b.plain(checkpoint.DeltaConv, i),
		ALog: b.plain(checkpoint.DeltaALog, i),
		DT:   b.plain(checkpoint.DeltaDT, i),
		Norm: b.plain(checkpoint.DeltaNorm, i),
		Out:  b.matrix(checkpoint.DeltaOut, i),
	}
}

func (b binder) attention(i int) *backend.Attention {
	return &backend.Attention{
		Q:     b.matrix(checkpoint.AttentionQ, i),
		K:     b.matrix(checkpoint.AttentionK, i),
		V:     b.matrix(checkpoint.AttentionV, i),
		QNorm: b.plain(checkpoint.AttentionQNorm, i),
		KNorm: b.plain(checkpoint.AttentionKNorm, i),
		Out:   b.matrix(checkpoint.AttentionOut, i),
	}
}

func (b binder) moe(i int) backend.MoE {
	return backend.MoE{
		Router:     b.matrix(checkpoint.Router, i),
		Gate:       b.matrix(checkpoint.ExpertGate, i),
		Up:         b.matrix(checkpoint.ExpertUp, i),
		Down:       b.matrix(checkpoint.ExpertDown, i),
		SharedMix:  b.matrix(checkpoint.SharedMix, i),
		SharedGate: b.matrix(checkpoint.SharedGate, i),
		SharedUp:   b.matrix(checkpoint.SharedUp, i),
		SharedDown: b.matrix(checkpoint.SharedDown, i),
	}
}

// matrix binds a quantised matrix or a stack of them.
func (b binder) matrix(p checkpoint.Part, layer int) backend.Quantised {
	name, shape := p.Name(layer), p.Shape(b.config)
	q := backend.Quantised{
		Weight:  b.weight(name + ".weight"),
		Scales:  b.weight(name + ".scales"),
		Biases:  b.weight(name + ".biases"),
		Experts: 1,
		Out:     shape[len(shape)-2],
		In:      shape[len(shape)-1],
		Bits:    p.Bits(),
	}
	if len(shape) == 3 {
		q.Experts = shape[0]
	}
	return q
}

func (b binder) plain(p checkpoint.Part, layer int) checkpoint.Weight {
	return b.weight(p.Name(layer))
}

func (b binder) weight(name string) checkpoint.Weight {
	w, ok := b.checkpoint.Weight(name)
	if !ok {
		panic(fmt.Sprintf("model: an open checkpoint lacks %s", name))
	}
	return w
}
