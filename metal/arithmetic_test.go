//go:build darwin || freebsd || linux

package metal

import (
	"math"
	"testing"

	"calla/core/backend"
	"calla/metal/emulator"
)

// TestArithmetic measures the floating-point operations of attention and of the
// delta rule at real dimensions, and compares them with the formulas that stand
// beside the kernels.
func TestArithmetic(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	m, err := emulator.OpenTraced(built(t, "libcalla-traced.so"))
	if err != nil {
		t.Fatal(err)
	}
	a, d := realAttention.shape(), realDelta.shape()
	attention := func(from, rows int) (flops float64) {
		for i := range rows {
			flops += 4 * float64(from+i+1) * float64(a.Heads*a.Dim)
		}
		return flops
	}
	k, v, heads := float64(d.KeyDim), float64(d.ValueDim), float64(d.ValueHeads)
	const n = backend.SubChunk
	pairs := 5.0/8*4*n*n*k + n*n*n
	walk := 2*n*3*k*v + 9.0/16*4*n*n*v
	step := 7*k*v + 128*v + 12*(2*k+v) + 10*256
	_, spans := spans(4096)
	merge := 5 * float64(spans*a.Heads*a.Dim)
	for _, tt := range []struct {
		name    string
		formula float64
		encode  func(*rig)
		twice   bool // a fault that must show
	}{
		{"attention, a row of decode", attention(4095, 1) + merge, func(r *rig) { r.attendStep(a, 4095) }, false},
		{"attention, rows of a prompt", attention(500, 8), func(r *rig) { r.attendRows(a, 500, 8) }, false},
		{"delta rule, a row of decode", heads * step, func(r *rig) { r.deltaStep(d) }, false},
		{"delta rule, a sub-chunk", heads * (pairs + walk), func(r *rig) { r.deltaChunks(d, n) }, false},
		{"attention, read twice", attention(500, 8), func(r *rig) { r.attendRows(a, 500, 8); r.attendRows(a, 500, 8) }, true},
		{"delta rule, a row made twice", heads * step, func(r *rig) { r.deltaStep(d); r.deltaStep(d) }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRig(t, m, emulator.Schedule{})
			tt.encode(r)
			got := float64(m.Flops(r.run))
			t.Logf("%.4g operations, the formula has %.4g: %+.1f %%", got, tt.formula, 100*(got/tt.formula-1))
			if over := math.Abs(got/tt.formula-1) > 0.05; over != tt.twice {
				t.Errorf("%.4g operations, want %.4g within 5 %%: %v, want %v", got, tt.formula, !over, !tt.twice)
			}
		})
	}
}

// attendStep encodes the attention of a row on values of zero.
func (r *rig) attendStep(s AttentionShape, from int) {
	stats, partial := r.zeros(8*s.KVHeads*spanMost*queryRows), r.zeros(4*s.KVHeads*spanMost*queryRows*s.Dim)
	q, cache := r.zeros(2*(s.Heads+queryPad)*s.Dim), r.zeros(align(from+1, 64)*s.tokenBytes())
	r.enc.AttendStep(s, r.zeros(2*s.Width), q, cache, partial, stats, r.zeros(2*s.Heads*s.Dim), from)
}

// attendRows encodes the attention of prompt rows on values of zero.
func (r *rig) attendRows(s AttentionShape, from, rows int) {
	q, cache := r.zeros(2*(rows*s.Heads+queryPad)*s.Dim), r.zeros(align(from+rows, 64)*s.tokenBytes())
	r.enc.AttendRows(s, r.zeros(2*rows*s.Width), q, cache, r.zeros(2*rows*s.Heads*s.Dim), rows, from)
}

// deltaStep encodes the delta rule of a row on values of zero.
func (r *rig) deltaStep(s DeltaShape) {
	w := newDeltaTwin(s, r.source).weights(r)
	conv := r.zeros(2 * (convTaps - 1) * s.Channels())
	state := r.zeros(4 * s.ValueHeads * s.ValueDim * s.KeyDim)
	r.enc.DeltaStep(s, w, r.zeros(2*s.Width), conv, r.zeros(2*(convTaps-1)*s.Channels()), state, r.zeros(2*s.values()))
}

// deltaChunks encodes the delta rule of one sub-chunk on values of zero.
func (r *rig) deltaChunks(s DeltaShape, rows int) {
	qkv, gates := r.zeros(4*(rows+deltaPad)*s.Channels()), r.zeros(8*(rows+deltaPad)*s.ValueHeads)
	state := r.zeros(4 * s.ValueHeads * s.ValueDim * s.KeyDim)
	r.enc.DeltaChunks(s, r.u32s(0, u32(rows)), 1, qkv, gates, r.zeros(s.ValueHeads*pairBytes), state, r.zeros(2*rows*s.values()))
}

func (r *rig) zeros(bytes int) Binding {
	b := r.buffer(bytes)
	clear(b.Buffer.Bytes)
	return b
}
