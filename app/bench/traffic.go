package bench

import (
	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/engine"
)

// Traffic is the memory that a decoded token moves, in bytes.
type Traffic struct {
	Weights int64 `json:"weights"` // read: a row of the embedding, the chosen experts, the head's tokens, all else
	State   int64 `json:"state"`   // the recurrent state, read and written
	Context int64 `json:"context"` // read for each token of the context
}

// at returns the bytes of a token with so many before it.
func (t Traffic) at(context int) int64 { return t.Weights + t.State + t.Context*int64(context) }

// TrafficOf returns what the model's definition asks for. A device may move
// more.
func TrafficOf(b *backend.Binding) Traffic {
	one := engine.Options{MaxSeq: 1}.Memory(b.Config, 0, func(int, int) int64 { return 0 })
	t := Traffic{State: 2 * one.Recurrent, Context: one.KV}
	rows := int64(b.Config.Vocab)
	t.Weights = quantised(b.Embed)/rows + b.Norm.Size + quantised(b.Head)*int64(b.Logits())/rows
	for _, l := range b.Layers {
		t.Weights += l.InputNorm.Size + l.PostNorm.Size + moeBytes(l.MoE, b.Config)
		if d := l.Delta; d != nil {
			t.Weights += quantised(d.QKV, d.Z, d.B, d.A, d.Out) + plain(d.Conv, d.ALog, d.DT, d.Norm)
		}
		if a := l.Attention; a != nil {
			t.Weights += quantised(a.Q, a.K, a.V, a.Out) + plain(a.QNorm, a.KNorm)
		}
	}
	return t
}

func moeBytes(m backend.MoE, c checkpoint.Config) int64 {
	routed := quantised(m.Gate, m.Up, m.Down) * int64(c.ExpertsPerToken) / int64(c.Experts)
	return routed + quantised(m.Router, m.SharedMix, m.SharedGate, m.SharedUp, m.SharedDown)
}

func quantised(all ...backend.Quantised) (n int64) {
	for _, q := range all {
		n += plain(q.Weight, q.Scales, q.Biases)
	}
	return n
}

func plain(all ...checkpoint.Weight) (n int64) {
	for _, w := range all {
		n += w.Size
	}
	return n
}
