package metal

import (
	"fmt"
	"math"
	"testing"

	"calla/core/cpu"
)

// deltaCase is a delta net between its projections.
type deltaCase struct {
	keyHeads, valueHeads int
	keyDim, valueDim     int
}

func (c deltaCase) String() string {
	return fmt.Sprintf("%d×%d, %d×%d", c.keyHeads, c.keyDim, c.valueHeads, c.valueDim)
}

func (c deltaCase) shape() DeltaShape {
	s := DeltaShape{KeyHeads: c.keyHeads, ValueHeads: c.valueHeads, KeyDim: c.keyDim, ValueDim: c.valueDim, Eps: eps}
	s.Z = s.Channels()
	s.B = s.Z + s.values()
	s.A = s.B + align(s.ValueHeads, tileRows)
	s.Width = s.A + align(s.ValueHeads, tileRows)
	return s
}

var deltaCases = []deltaCase{
	{1, 1, 64, 64}, {2, 4, 64, 64}, {1, 2, 64, 128}, {2, 2, 128, 64}, {1, 3, 128, 128}, realDelta,
}

var realDelta = deltaCase{16, 32, 128, 128}

// deltaTwin is the plain twin, one row after another.
type deltaTwin struct {
	s                    DeltaShape
	taps, rate, dt, norm []float32
	conv                 []float32 // [3, channels]
	state                []float32
}

func newDeltaTwin(s DeltaShape, src operands) *deltaTwin {
	d := &deltaTwin{
		s: s, taps: src.normal(s.Channels()*convTaps, 0.5), norm: src.around(s.ValueDim, 1, 0.2),
		rate: make([]float32, s.ValueHeads), dt: src.normal(s.ValueHeads, 1),
		conv: src.normal((convTaps-1)*s.Channels(), 1), state: make([]float32, s.values()*s.KeyDim),
	}
	for i := range d.rate {
		d.rate[i] = float32(0.01 + 0.5*src.Float64())
	}
	for i := range d.state {
		d.state[i] = float32(0.1 * src.NormFloat64())
	}
	return d
}

func (d *deltaTwin) weights(r *rig) DeltaWeights {
	return DeltaWeights{r.bf16s(d.taps), r.f32s(d.rate), r.f32s(d.dt), r.f32s(d.norm)}
}

// heads runs the convolution, the norms and the gates of projected rows.
func (d *deltaTwin) heads(projected []float32, rows int) (qkv, beta, decay, z []float32) {
	s, channels := d.s, d.s.Channels()
	x := append([]float32(nil), d.conv...)
	for t := range rows {
		row := projected[t*s.Width:][:s.Width]
		x = append(x, row[:channels]...)
		z = append(z, row[s.Z:][:s.values()]...)
		beta = append(beta, row[s.B:][:s.ValueHeads]...)
		decay = append(decay, row[s.A:][:s.ValueHeads]...)
	}
	qkv = make([]float32, rows*channels)
	cpu.Conv(cpu.BF16, qkv, x, byTap(d.taps, channels), rows, channels, 0, channels)
	d.conv = x[rows*channels:]
	keys := s.KeyHeads * s.KeyDim
	for t := range rows {
		row := qkv[t*channels:]
		cpu.UnitNorm(cpu.BF16, row[:keys], s.KeyDim, float32(1/math.Sqrt(float64(s.KeyDim))))
		cpu.UnitNorm(cpu.BF16, row[keys:2*keys], s.KeyDim, 1)
	}
	cpu.Gates(cpu.BF16, beta, decay, d.rate, d.dt)
	return qkv, beta, decay, z
}

// byTap turns [channels, taps] into [taps, channels]: a kernel wants the taps of
// a channel side by side, the processor the channels of a tap.
func byTap(w []float32, channels int) []float32 {
	taps := len(w) / channels
	out := make([]float32, len(w))
	for c := range channels {
		for j := range taps {
			out[j*channels+c] = w[c*taps+j]
		}
	}
	return out
}

// head returns the part of qkv that a value head's row uses.
func (d *deltaTwin) head(qkv []float32, t, h int) (q, k, v []float32) {
	s := d.s
	row, keys := qkv[t*s.Channels():], s.KeyHeads*s.KeyDim
	at := h / (s.ValueHeads / s.KeyHeads) * s.KeyDim
	return row[at:][:s.KeyDim], row[keys+at:][:s.KeyDim], row[2*keys+h*s.ValueDim:][:s.ValueDim]
}

// step is one row of decode.
func (d *deltaTwin) step(projected []float32) []float32 {
	qkv, beta, decay, z := d.heads(projected, 1)
	y := make([]float32, d.s.values())
	size := d.s.ValueDim * d.s.KeyDim
	for h := range d.s.ValueHeads {
		q, k, v := d.head(qkv, 0, h)
		cpu.DeltaStep(cpu.BF16, y[h*d.s.ValueDim:][:d.s.ValueDim], d.state[h*size:][:size], q, k, v,
			float32(math.Exp(float64(decay[h]))), beta[h])
	}
	cpu.GatedNorm(cpu.BF16, y, y, z, d.norm, eps)
	return y
}

// rows is a prefill, cut into sub-chunks.
func (d *deltaTwin) rows(projected []float32, chunks [][2]uint32) []float32 {
	s := d.s
	rows := len(projected) / s.Width
	qkv, beta, decay, z := d.heads(projected, rows)
	y := make([]float32, rows*s.values())
	size := s.ValueDim * s.KeyDim
	for h := range s.ValueHeads {
		for _, c := range chunks {
			var q, k, v, b, l []float32
			for t := int(c[0]); t < int(c[0]+c[1]); t++ {
				qt, kt, vt := d.head(qkv, t, h)
				q, k, v = append(q, qt...), append(k, kt...), append(v, vt...)
				b, l = append(b, beta[t*s.ValueHeads+h]), append(l, decay[t*s.ValueHeads+h])
			}
			o := make([]float32, len(v))
			cpu.DeltaChunk(cpu.BF16, o, d.state[h*size:][:size], q, k, v, l, b)
			for i := range int(c[1]) {
				copy(y[(int(c[0])+i)*s.values()+h*s.ValueDim:], o[i*s.ValueDim:][:s.ValueDim])
			}
		}
	}
	cpu.GatedNorm(cpu.BF16, y, y, z, d.norm, eps)
	return y
}

// A rounding that goes the other way in a query, a key or a value moves an
// output by half a percent of its head's, and the norm passes that on.
const (
	deltaEps      = 0.01
	deltaStateEps = 0.003
)

func TestDeltaStep(t *testing.T) {
	for _, c := range deltaCases {
		t.Run(c.String(), func(t *testing.T) {
			everyOrder(t, sized(c.valueHeads < 3, c.valueHeads > 4), func(t *testing.T, r *rig) {
				steps := 300
				if e, ok := r.driver.(*Emulated); ok && e.schedule.Order != 5 {
					steps = 30
				}
				if c.valueHeads > 4 {
					steps = 4
				}
				if r.sanitised() {
					steps = 3
				}
				s, d := c.shape(), newDeltaTwin(c.shape(), r.source)
				w, state := d.weights(r), r.f32s(d.state)
				conv := [2]Binding{r.bf16s(d.conv), r.buffer(2 * len(d.conv))}
				y := r.buffer(2 * s.values())
				for i := range steps {
					projected := r.source.normal(s.Width, 1)
					want := d.step(projected)
					r.enc.DeltaStep(s, w, r.bf16s(projected), conv[i%2], conv[1-i%2], state, y)
					r.run()
					within(t, fmt.Sprintf("y of step %d", i), read16(y, s.values()), want, 1, deltaEps)
					if t.Failed() {
						return
					}
				}
				within(t, "state", read32(state, len(d.state)), d.state, 0, deltaStateEps)
				within(t, "conv state", read16(conv[steps%2], len(d.conv)), d.conv, 0, 0)
			})
		})
	}
}

func TestDeltaRows(t *testing.T) {
	for _, tt := range []struct {
		rows     int
		segments []int
		c        deltaCase
	}{
		{1, []int{0}, deltaCases[0]},
		{2, []int{0}, deltaCases[1]},
		{5, []int{0}, deltaCases[2]}, {6, []int{0, 3}, deltaCases[0]}, {7, []int{0}, deltaCases[3]}, {8, []int{0}, deltaCases[1]},
		{32, []int{0}, deltaCases[0]},
		{3, []int{0, 1, 2}, deltaCases[2]},
		{4, []int{0}, deltaCases[3]},
		{9, []int{0, 5}, deltaCases[4]},
		{31, []int{0}, deltaCases[1]},
		{33, []int{0, 32}, deltaCases[1]},
		{63, []int{0}, deltaCases[3]},
		{64, []int{0}, deltaCases[4]},
		{65, []int{0}, deltaCases[2]},
		{130, []int{0, 1, 70, 129}, deltaCases[1]},
		{40, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35}, deltaCases[1]},
		{66, []int{0}, deltaCases[5]},
		{500, []int{0, 77}, deltaCases[1]},
	} {
		t.Run(fmt.Sprintf("%d rows from %v, %v", tt.rows, tt.segments[:min(4, len(tt.segments))], tt.c), func(t *testing.T) {
			everyOrder(t, sized(tt.rows < 5, tt.rows > 4 && tt.rows < 9 || tt.rows > 200 || tt.c.valueHeads > 4), func(t *testing.T, r *rig) {
				s, d := tt.c.shape(), newDeltaTwin(tt.c.shape(), r.source)
				w, state := d.weights(r), r.f32s(d.state)
				convIn, convOut := r.bf16s(d.conv), r.buffer(2*len(d.conv))
				projected := r.source.normal(tt.rows*s.Width, 1)
				chunks := subChunks(tt.segments, 0, tt.rows)
				want := d.rows(projected, chunks)

				var list []uint32
				for _, c := range chunks {
					list = append(list, c[0], c[1])
				}
				in, y := r.bf16s(projected), r.buffer(2*tt.rows*s.values())
				qkv, gates := r.buffer(4*(tt.rows+deltaPad)*s.Channels()), r.buffer(8*(tt.rows+deltaPad)*s.ValueHeads)
				pairs := r.buffer(min(len(chunks), deltaBatch) * s.ValueHeads * pairBytes)
				r.enc.DeltaPrepare(s, w, in, convIn, convOut, qkv, gates, tt.rows)
				r.enc.DeltaChunks(s, r.u32s(list...), len(chunks), qkv, gates, pairs, state, y)
				r.enc.GatedNormRows(s, w, in, y, tt.rows)
				r.run()
				for t0 := range tt.rows {
					n := s.values()
					within(t, fmt.Sprintf("y of row %d", t0), read16(y, tt.rows*n)[t0*n:][:n], want[t0*n:][:n], 1, deltaEps)
				}
				within(t, "state", read32(state, len(d.state)), d.state, 0, deltaStateEps)
				within(t, "conv state", read16(convOut, len(d.conv)), d.conv, 0, 0)
			})
		})
	}
}
