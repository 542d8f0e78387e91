package main

import (
	"encoding/binary"
	"fmt"
	"math"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/tensor"
)

// array is one tensor of the file. Its rows are made one by one, in any order
// and from several goroutines.
type array struct {
	name     string
	shape    []int // the outermost dimension first
	format   *format
	rows     int
	rowBytes int
	row      func(dst []byte, r int)
}

// order says where a row, or a block of a row, comes from.
type order func(int) int

func asItIs(i int) int { return i }

// layout lists the tensors of a checkpoint under llama.cpp's names.
type layout struct {
	config checkpoint.Config
	format *format // of 4-bit matrices
	arrays []array
}

func newLayout(b *backend.Binding, f *format) []array {
	l := &layout{config: b.Config, format: f}
	l.matrix("token_embd", b.Embed)
	for i, layer := range b.Layers {
		l.layer(fmt.Sprintf("blk.%d.", i), layer)
	}
	l.plain("output_norm.weight", b.Norm)
	l.matrix("output", b.Head)
	return l.arrays
}

func (l *layout) layer(at string, b backend.Layer) {
	l.plain(at+"attn_norm.weight", b.InputNorm)
	if b.Delta != nil {
		l.delta(at, b.Delta)
	} else {
		l.attention(at, b.Attention)
	}
	l.plain(at+"post_attention_norm.weight", b.PostNorm)
	l.moe(at, b.MoE)
}

// delta lists a delta net. Value heads stand in llama.cpp's order: the first of
// every key head, then the second of every key head.
func (l *layout) delta(at string, d *backend.DeltaNet) {
	c := l.config
	heads := tiled(c.DeltaKeyHeads, c.DeltaValueHeads)
	values := wide(heads, c.DeltaValueDim)
	channels := after(2*c.DeltaKeyHeads*c.DeltaKeyDim, values)
	l.reordered(at+"attn_qkv.weight", d.QKV, l.format, channels, asItIs)
	l.reordered(at+"attn_gate.weight", d.Z, l.format, values, asItIs)
	l.reordered(at+"ssm_beta.weight", d.B, l.format, heads, asItIs)
	l.reordered(at+"ssm_alpha.weight", d.A, l.format, heads, asItIs)
	l.reordered(at+"ssm_out.weight", d.Out, l.format, asItIs, wide(heads, c.DeltaValueDim/block))

	l.floats(at+"ssm_conv1d.weight", []int{c.ConvDim(), c.ConvTaps}, permuted(values32(d.Conv), c.ConvTaps, channels))
	decay := permuted(values32(d.ALog), 1, heads)
	for i, a := range decay {
		decay[i] = float32(-math.Exp(float64(a)))
	}
	l.floats(at+"ssm_a", []int{len(decay)}, decay)
	l.floats(at+"ssm_dt.bias", []int{c.DeltaValueHeads}, permuted(values32(d.DT), 1, heads))
	l.plain(at+"ssm_norm.weight", d.Norm)
}

func (l *layout) attention(at string, a *backend.Attention) {
	l.matrix(at+"attn_q", a.Q)
	l.matrix(at+"attn_k", a.K)
	l.matrix(at+"attn_v", a.V)
	l.matrix(at+"attn_output", a.Out)
	l.plain(at+"attn_q_norm.weight", a.QNorm)
	l.plain(at+"attn_k_norm.weight", a.KNorm)
}

// moe lists a mixture of experts. Router and mix stay float32, as llama.cpp's
// own converter leaves them: they decide which experts a token has, and so how
// much work it is.
func (l *layout) moe(at string, m backend.MoE) {
	l.reordered(at+"ffn_gate_inp.weight", m.Router, f32, asItIs, asItIs)
	l.reordered(at+"ffn_gate_inp_shexp.weight", m.SharedMix, f32, asItIs, asItIs)
	l.arrays[len(l.arrays)-1].shape = []int{l.config.Hidden}
	l.matrix(at+"ffn_gate_exps", m.Gate)
	l.matrix(at+"ffn_up_exps", m.Up)
	l.matrix(at+"ffn_down_exps", m.Down)
	l.matrix(at+"ffn_gate_shexp", m.SharedGate)
	l.matrix(at+"ffn_up_shexp", m.SharedUp)
	l.matrix(at+"ffn_down_shexp", m.SharedDown)
}

func (l *layout) matrix(name string, q backend.Quantised) {
	l.reordered(name+".weight", q, l.format, asItIs, asItIs)
}

// reordered lists a matrix whose rows, and whose blocks in a row, come from
// elsewhere.
func (l *layout) reordered(name string, q backend.Quantised, f *format, rows, blocks order) {
	shape := []int{q.Out, q.In}
	if q.Experts > 1 {
		shape = append([]int{q.Experts}, shape...)
	}
	m := matrix{codes: q.Weight.Bytes(), scales: q.Scales.Bytes(), biases: q.Biases.Bytes(), in: q.In, bits: q.Bits}
	l.arrays = append(l.arrays, array{
		name: name, shape: shape, format: f, rows: q.Experts * q.Out, rowBytes: f.rowBytes(q.In),
		row: func(dst []byte, r int) { m.write(dst, f, rows(r), blocks) },
	})
}

func (l *layout) plain(name string, w checkpoint.Weight) {
	v := values32(w)
	l.floats(name, []int{len(v)}, v)
}

func (l *layout) floats(name string, shape []int, v []float32) {
	l.arrays = append(l.arrays, array{
		name: name, shape: shape, format: f32, rows: 1, rowBytes: 4 * len(v),
		row: func(dst []byte, _ int) {
			for i, x := range v {
				binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
			}
		},
	})
}

func values32(w checkpoint.Weight) []float32 { return tensor.Float32s(w.DType, w.Bytes()) }

// matrix is where a quantised matrix's bytes are.
type matrix struct {
	codes, scales, biases []byte
	in, bits              int
}

// write writes row r, its blocks taken from where blocks says.
func (m matrix) write(dst []byte, f *format, r int, blocks order) {
	var codes [block]byte
	for b := range m.in / block {
		at := r*m.in + blocks(b)*block
		m.unpack(codes[:], at)
		group := at / 64
		f.write(dst[b*f.size:], codes[:], bf16(m.scales, group), bf16(m.biases, group))
	}
}

// unpack copies the codes from value at on.
func (m matrix) unpack(dst []byte, at int) {
	if m.bits == 8 {
		copy(dst, m.codes[at:])
		return
	}
	for i, pair := range m.codes[at/2 : (at+len(dst))/2] {
		dst[2*i], dst[2*i+1] = pair&15, pair>>4
	}
}

func bf16(b []byte, i int) float32 { return tensor.FromBF16(binary.LittleEndian.Uint16(b[2*i:])) }

// tiled says which head of ours, grouped by key head, each of llama.cpp's is.
func tiled(keys, values int) order {
	return func(head int) int { return head%keys*(values/keys) + head/keys }
}

// wide is an order of things that are n to a head.
func wide(heads order, n int) order {
	return func(i int) int { return heads(i/n)*n + i%n }
}

// after leaves the first n where they are.
func after(n int, o order) order {
	return func(i int) int {
		if i < n {
			return i
		}
		return n + o(i-n)
	}
}

// permuted returns v with its rows of width values in another order.
func permuted(v []float32, width int, o order) []float32 {
	out := make([]float32, 0, len(v))
	for r := range len(v) / width {
		out = append(out, v[o(r)*width:(o(r)+1)*width]...)
	}
	return out
}
