package metal

import (
	"fmt"
	"testing"

	"calla/core/cpu"
)

// attentionCase is a full attention between its projections.
type attentionCase struct{ heads, kvHeads, dim, rotary int }

func (c attentionCase) String() string {
	return fmt.Sprintf("%d/%d heads of %d", c.heads, c.kvHeads, c.dim)
}

func (c attentionCase) shape() AttentionShape {
	s := AttentionShape{Heads: c.heads, KVHeads: c.kvHeads, Dim: c.dim, Rotary: c.rotary, Eps: eps}
	s.K = 2 * s.Heads * s.Dim
	s.V = s.K + s.KVHeads*s.Dim
	s.Width = s.V + s.KVHeads*s.Dim
	return s
}

var (
	tinyAttention  = attentionCase{8, 2, 64, 16}
	demoAttention  = attentionCase{4, 2, 64, 16}
	pairAttention  = attentionCase{4, 2, 256, 64}
	realAttention  = attentionCase{16, 2, 256, 64}
	smallAttention = attentionCase{2, 1, 64, 16}
	groupAttention = attentionCase{8, 1, 64, 16}
)

// attentionTwin is the plain twin, with the cache that is there before it.
type attentionTwin struct {
	s            AttentionShape
	qNorm, kNorm []float32
	frequencies  []float64
	keys, values [][]float32 // of each KV head, [tokens, dim]
}

func newAttentionTwin(s AttentionShape, src operands, from int) *attentionTwin {
	a := &attentionTwin{
		s: s, qNorm: src.around(s.Dim, 1, 0.2), kNorm: src.around(s.Dim, 1, 0.2),
		frequencies: ropeFrequencies(s.Rotary, 10_000_000),
	}
	for range s.KVHeads {
		a.keys = append(a.keys, src.normal(from*s.Dim, 1))
		a.values = append(a.values, src.normal(from*s.Dim, 1))
	}
	return a
}

// cache returns the device's cache of the tokens before, with room for rows
// more and up to the next block of keys.
func (a *attentionTwin) cache(r *rig, rows int) Binding {
	s := a.s
	from := len(a.keys[0]) / s.Dim
	b := r.buffer(align(from+rows, 64) * s.tokenBytes())
	for t := range from {
		for h := range s.KVHeads {
			for half, values := range [][]float32{a.keys[h], a.values[h]} {
				at := b.Buffer.at(int64(t*s.tokenBytes() + (half*s.KVHeads+h)*s.Dim*2))
				pack16(at, values[t*s.Dim:][:s.Dim])
			}
		}
	}
	return b
}

// row takes one more row and returns its gated output.
func (a *attentionTwin) row(projected []float32) []float32 {
	s := a.s
	position := len(a.keys[0]) / s.Dim
	cos, sin := make([]float32, s.Rotary/2), make([]float32, s.Rotary/2)
	cpu.RopeAngles(cos, sin, position, a.frequencies)
	for h := range s.KVHeads {
		k := append([]float32(nil), projected[s.K+h*s.Dim:][:s.Dim]...)
		cpu.RMSNorm(cpu.BF16, k, k, a.kNorm, eps)
		cpu.Rope(cpu.BF16, k, cos, sin)
		a.keys[h] = append(a.keys[h], k...)
		a.values[h] = append(a.values[h], projected[s.V+h*s.Dim:][:s.Dim]...)
	}
	out := make([]float32, s.Heads*s.Dim)
	for h := range s.Heads {
		q := append([]float32(nil), projected[h*2*s.Dim:][:s.Dim]...)
		cpu.RMSNorm(cpu.BF16, q, q, a.qNorm, eps)
		cpu.Rope(cpu.BF16, q, cos, sin)
		o, kv := out[h*s.Dim:][:s.Dim], h/(s.Heads/s.KVHeads)
		cpu.Attend(cpu.BF16, o, q, a.keys[kv], a.values[kv], s.args(1, 0).Scale)
		cpu.OutputGate(cpu.BF16, o, projected[h*2*s.Dim+s.Dim:][:s.Dim])
	}
	return out
}

// attentionAngles makes what a call's inputs hold.
func (a *attentionTwin) angles(r *rig, from, rows int) Binding {
	var out []float32
	cos, sin := make([]float32, a.s.Rotary/2), make([]float32, a.s.Rotary/2)
	for t := range rows {
		cpu.RopeAngles(cos, sin, from+t, a.frequencies)
		for i := range cos {
			out = append(out, cos[i], sin[i])
		}
	}
	return r.f32s(out)
}

// attentionEps is what a query or key that rounds the other way moves outputs
// by, relative to the largest.
const attentionEps = 0.004

// attentionSize returns the size of a case.
func attentionSize(from, rows int, c attentionCase) size {
	if from > 5000 {
		return huge
	}
	return sized(rows < 5 && from < 100 && c.dim < 100, rows > 60 || c.heads > 8)
}

func TestAttendStep(t *testing.T) {
	for _, tt := range []struct {
		c    attentionCase
		from []int
	}{
		{smallAttention, []int{0, 1, 7, 8, 30, 31, 32, 63, 64, 65, 1000, 4095, 4096}},
		{tinyAttention, []int{0, 33, 4500}},
		{demoAttention, []int{5, 200}},
		{pairAttention, []int{2, 100}},
		{groupAttention, []int{70}},
		{realAttention, []int{0, 31, 32, 1000}},
		{smallAttention, []int{32767, 32768, 65535, 131071, 262143}},
	} {
		for _, from := range tt.from {
			t.Run(fmt.Sprintf("%v at %d", tt.c, from), func(t *testing.T) {
				if testing.Short() && from > 5000 {
					t.Skip("a long context")
				}
				everyOrder(t, attentionSize(from, 1, tt.c), func(t *testing.T, r *rig) {
					s, a := tt.c.shape(), newAttentionTwin(tt.c.shape(), r.source, from)
					cache := a.cache(r, 1)
					projected := r.source.normal(s.Width, 1)
					want := a.row(projected)
					in, q, y := r.bf16s(projected), r.buffer(2*(s.Heads+queryPad)*s.Dim), r.buffer(2*s.Heads*s.Dim)
					partial, stats := r.buffer(4*s.KVHeads*spanMost*queryRows*s.Dim), r.buffer(8*s.KVHeads*spanMost*queryRows)
					r.enc.AttentionPrepare(s, in, r.bf16s(a.qNorm), r.bf16s(a.kNorm), a.angles(r, from, 1), q, cache, 1, from)
					r.enc.AttendStep(s, in, q, cache, partial, stats, y, from)
					r.run()
					within(t, "y", read16(y, len(want)), want, 2, attentionEps)
					row := cache.Buffer.at(int64(from * s.tokenBytes()))
					within(t, "key", read16(row, s.Dim), a.keys[0][from*s.Dim:], 1, attentionEps)
					row.Offset += int64(s.KVHeads * s.Dim * 2)
					within(t, "value", read16(row, s.Dim), a.values[0][from*s.Dim:], 0, 0)
				})
			})
		}
	}
}

func TestAttendRows(t *testing.T) {
	for _, tt := range []struct {
		c          attentionCase
		from, rows int
	}{
		{smallAttention, 0, 1}, {smallAttention, 63, 2}, {smallAttention, 64, 3}, {tinyAttention, 61, 4}, {tinyAttention, 0, 5},
		{groupAttention, 3, 6}, {pairAttention, 60, 7}, {smallAttention, 30, 8}, {groupAttention, 1, 32},
		{demoAttention, 10, 9}, {demoAttention, 0, 31}, {tinyAttention, 200, 33}, {pairAttention, 5, 63}, {smallAttention, 0, 64},
		{realAttention, 40, 65}, {demoAttention, 0, 150}, {smallAttention, 32_760, 9},
		{smallAttention, 65_533, 5}, {smallAttention, 131_069, 5}, {smallAttention, 262_140, 4},
	} {
		t.Run(fmt.Sprintf("%v, %d rows at %d", tt.c, tt.rows, tt.from), func(t *testing.T) {
			if testing.Short() && tt.from > 5000 {
				t.Skip("a long context")
			}
			everyOrder(t, attentionSize(tt.from, tt.rows, tt.c), func(t *testing.T, r *rig) {
				s, a := tt.c.shape(), newAttentionTwin(tt.c.shape(), r.source, tt.from)
				cache := a.cache(r, tt.rows)
				projected := r.source.normal(tt.rows*s.Width, 1)
				in, q := r.bf16s(projected), r.buffer(2*(tt.rows*s.Heads+queryPad)*s.Dim)
				y := r.buffer(2 * tt.rows * s.Heads * s.Dim)
				r.enc.AttentionPrepare(s, in, r.bf16s(a.qNorm), r.bf16s(a.kNorm), a.angles(r, tt.from, tt.rows), q, cache, tt.rows, tt.from)
				r.enc.AttendRows(s, in, q, cache, y, tt.rows, tt.from)
				r.run()
				got, n := read16(y, tt.rows*s.Heads*s.Dim), s.Heads*s.Dim
				for i := range tt.rows {
					within(t, fmt.Sprintf("row %d", i), got[i*n:][:n], a.row(projected[i*s.Width:][:s.Width]), 2, attentionEps)
				}
			})
		})
	}
}
