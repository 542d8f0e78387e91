package cpu

import (
	"context"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/tensor"
)

// weights is a model on the CPU: views of the mapped checkpoint, and the small
// vectors widened.
type weights struct {
	device *Device
	config checkpoint.Config
	dims   dims

	embed, head Matrix
	norm        []float32
	layers      []layer

	frequencies []float64 // of rope
	mapped      int64     // bytes in the checkpoint's files
	widened     int64     // bytes of the vectors

	scratch scratch
}

// layer holds one layer's weights; index counts the layers of its kind.
type layer struct {
	index               int
	inputNorm, postNorm []float32
	delta               *deltaWeights
	attention           *attentionWeights
	moe                 moeWeights
}

type deltaWeights struct {
	qkv, z, b, a, out Matrix
	conv              []float32 // [taps, channels]
	rate              []float32 // exp(A_log), [value heads]
	dt                []float32 // [value heads]
	norm              []float32 // [value dim]
}

type attentionWeights struct {
	q, k, v, out Matrix
	qNorm, kNorm []float32 // [head dim]
}

type moeWeights struct {
	router, mix                  Matrix
	gate, up, down               stack
	sharedGate, sharedUp, shared Matrix
}

var _ backend.Weights = (*weights)(nil)

// Load implements backend.Device. Nothing is copied but the small vectors, so
// it takes the time to look at each layer.
func (d *Device) Load(ctx context.Context, b *backend.Binding, progress func(done, total int64)) (backend.Weights, error) {
	w := &weights{
		device:      d,
		config:      b.Config,
		dims:        newDims(b.Config),
		frequencies: RopeFrequencies(b.Config.RotaryDims, b.Config.RopeTheta),
	}
	total := bindingBytes(b)
	w.embed, w.head, w.norm = w.matrix(b.Embed), w.matrix(b.Head), w.vector(b.Norm)
	w.head.Out = b.Logits()
	kinds := map[bool]int{}
	for i, l := range b.Layers {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		attends := l.Attention != nil
		w.layers = append(w.layers, w.layer(l, kinds[attends]))
		kinds[attends]++
		if progress != nil && i < len(b.Layers)-1 {
			progress(w.mapped, total)
		}
	}
	if progress != nil {
		progress(total, total)
	}
	return w, nil
}

func (w *weights) layer(l backend.Layer, index int) layer {
	out := layer{
		index:     index,
		inputNorm: w.vector(l.InputNorm),
		postNorm:  w.vector(l.PostNorm),
		moe:       w.moe(l.MoE),
	}
	if d := l.Delta; d != nil {
		out.delta = &deltaWeights{
			qkv: w.matrix(d.QKV), z: w.matrix(d.Z), b: w.matrix(d.B), a: w.matrix(d.A), out: w.matrix(d.Out),
			conv: turned(w.vector(d.Conv), w.dims.conv), rate: w.vector(d.ALog), dt: w.vector(d.DT), norm: w.vector(d.Norm),
		}
		for i, x := range out.delta.rate {
			out.delta.rate[i] = exp(x)
		}
	}
	if a := l.Attention; a != nil {
		out.attention = &attentionWeights{
			q: w.matrix(a.Q), k: w.matrix(a.K), v: w.matrix(a.V), out: w.matrix(a.Out),
			qNorm: w.vector(a.QNorm), kNorm: w.vector(a.KNorm),
		}
	}
	return out
}

// turned returns the transpose of a matrix of rows rows.
func turned(x []float32, rows int) []float32 {
	y, width := make([]float32, len(x)), len(x)/rows
	for i, v := range x {
		y[i%width*rows+i/width] = v
	}
	return y
}

func (w *weights) moe(m backend.MoE) moeWeights {
	return moeWeights{
		router: w.matrix(m.Router), mix: w.matrix(m.SharedMix),
		gate: w.stack(m.Gate), up: w.stack(m.Up), down: w.stack(m.Down),
		sharedGate: w.matrix(m.SharedGate), sharedUp: w.matrix(m.SharedUp), shared: w.matrix(m.SharedDown),
	}
}

func (w *weights) matrix(q backend.Quantised) Matrix {
	w.mapped += quantisedBytes(q)
	return newMatrix(q)
}

func (w *weights) stack(q backend.Quantised) stack {
	w.mapped += quantisedBytes(q)
	return newStack(q)
}

func (w *weights) vector(v checkpoint.Weight) []float32 {
	w.mapped += v.Size
	x := tensor.Float32s(v.DType, v.Bytes())
	w.widened += int64(4 * len(x))
	return x
}

func quantisedBytes(q backend.Quantised) int64 { return q.Weight.Size + q.Scales.Size + q.Biases.Size }

// bindingBytes returns the bytes of all weights of a model.
func bindingBytes(b *backend.Binding) int64 {
	n := quantisedBytes(b.Embed) + quantisedBytes(b.Head) + b.Norm.Size
	for _, l := range b.Layers {
		n += l.InputNorm.Size + l.PostNorm.Size
		if d := l.Delta; d != nil {
			n += d.Conv.Size + d.ALog.Size + d.DT.Size + d.Norm.Size
			for _, q := range []backend.Quantised{d.QKV, d.Z, d.B, d.A, d.Out} {
				n += quantisedBytes(q)
			}
		}
		if a := l.Attention; a != nil {
			n += a.QNorm.Size + a.KNorm.Size
			for _, q := range []backend.Quantised{a.Q, a.K, a.V, a.Out} {
				n += quantisedBytes(q)
			}
		}
		m := l.MoE
		for _, q := range []backend.Quantised{m.Router, m.Gate, m.Up, m.Down, m.SharedMix, m.SharedGate, m.SharedUp, m.SharedDown} {
			n += quantisedBytes(q)
		}
	}
	return n
}

// Bytes implements backend.Weights.
func (w *weights) Bytes() (all, mapped int64) { return w.mapped + w.widened, w.mapped }

// Traits implements backend.Weights: a call is done when Commit returns, and
// takes the desktop only what the scheduler leaves it.
func (w *weights) Traits() backend.Traits { return backend.Traits{} }

// Close implements backend.Weights.
func (w *weights) Close() error {
	w.layers = nil
	return w.scratch.region.free()
}
