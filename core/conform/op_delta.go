package conform

import (
	"math"
	"slices"
	"testing"
)

func testConv(t *testing.T, o Operations) {
	for _, s := range []struct{ rows, channels, taps int }{{1, 1, 4}, {5, 70, 4}, {2, 64, 2}, {12, 512, 4}, {3, 8192, 4}} {
		r := newSource(s.rows, s.channels)
		x, w := r.normal((s.taps-1+s.rows)*s.channels, 1), r.normal(s.channels*s.taps, 0.5)
		want, magnitude := make([]float64, s.rows*s.channels), 0.0
		for t := range s.rows {
			for c := range s.channels {
				var sum, all float64
				for j := range s.taps {
					p := float64(w[c*s.taps+j]) * float64(x[(t+j)*s.channels+c])
					sum, all = sum+p, all+math.Abs(p)
				}
				want[t*s.channels+c] = sum * sigmoid64(sum)
				magnitude = max(magnitude, all)
			}
		}
		y := unset(len(want))
		o.Conv(y, x, w, s.rows, s.channels)
		// silu makes the relative error of a sum near -6 five times as large.
		near{1e-6, 7}.check(t, o, shape(s.rows, s.channels), y, want, magnitude)
	}
}

func testGates(t *testing.T, o Operations) {
	for _, s := range []struct{ rows, heads int }{{1, 1}, {3, 4}, {9, 32}} {
		r := newSource(s.rows, s.heads)
		n := s.rows * s.heads
		b, a := r.normal(n, 3), r.normal(n, 8)
		rate, dt := r.uniform(s.heads, 0.01, 16), r.normal(s.heads, 2)
		a[0] = 60 // softplus is its argument there
		beta, decay := make([]float64, n), make([]float64, n)
		for i := range n {
			h := i % s.heads
			beta[i] = sigmoid64(float64(b[i]))
			decay[i] = -float64(rate[h]) * math.Log1p(math.Exp(float64(a[i])+float64(dt[h])))
		}
		o.Gates(b, a, rate, dt)
		near{1e-6, 1}.check(t, o, shape(s.rows, s.heads)+" beta", b, beta, 0)
		near{2e-6, 0}.check(t, o, shape(s.rows, s.heads)+" decay", a, decay, 0)
	}
}

// deltaCase is one head's rows. Queries have the attention's scale in them;
// decay holds logarithms.
type deltaCase struct {
	name           string
	rows           int
	keyDim, valDim int
	slowest        float64 // log-decays lie between 0 and this
	state          float64 // spread of the state before the first row
}

var deltaCases = []deltaCase{
	{"one row, empty state", 1, 64, 64, -1, 0},
	{"two rows", 2, 64, 64, -1, 0.1},
	{"ragged dimensions", 37, 20, 36, -0.5, 0.1},
	{"one row less than a sub-chunk", 63, 128, 128, -0.1, 0.1},
	{"a sub-chunk", 64, 128, 128, -0.1, 0},
	{"hundreds of rows that remember", 400, 128, 128, -0.001, 0.1},
	{"hundreds of rows that forget at once", 300, 64, 64, -100, 0.1},
	{"no decay at all", 200, 32, 64, 0, 0},
}

// operands of a delta case.
type deltaOperands struct{ s, q, k, v, decay, beta []float32 }

func (c deltaCase) operands() deltaOperands {
	r := newSource(c.rows, c.keyDim)
	q := r.unit(c.rows, c.keyDim)
	for i := range q {
		q[i] *= float32(1 / math.Sqrt(float64(c.keyDim)))
	}
	return deltaOperands{
		s: r.uniform(c.valDim*c.keyDim, -c.state, c.state),
		q: q, k: r.unit(c.rows, c.keyDim), v: r.normal(c.rows*c.valDim, 1),
		decay: r.uniform(c.rows, c.slowest, 0), beta: r.uniform(c.rows, 0, 1),
	}
}

// formula returns o of every row and the state after the last.
func (c deltaCase) formula(d deltaOperands) (o, s []float64) {
	s = make([]float64, len(d.s))
	for i, x := range d.s {
		s[i] = float64(x)
	}
	for t := range c.rows {
		q, k := d.q[t*c.keyDim:], d.k[t*c.keyDim:]
		for i := range c.valDim {
			row := s[i*c.keyDim:][:c.keyDim]
			var remembered, out float64
			for j := range row {
				row[j] *= math.Exp(float64(d.decay[t]))
				remembered += row[j] * float64(k[j])
			}
			delta := float64(d.beta[t]) * (float64(d.v[t*c.valDim+i]) - remembered)
			for j := range row {
				row[j] += delta * float64(k[j])
				out += row[j] * float64(q[j])
			}
			o = append(o, out)
		}
	}
	return o, s
}

func testDeltaStep(t *testing.T, o Operations) {
	for _, c := range deltaCases {
		t.Run(c.name, func(t *testing.T) {
			d := c.operands()
			want, state := c.formula(d)
			got := unset(len(want))
			for i := range c.rows {
				o.DeltaStep(got[i*c.valDim:][:c.valDim], d.s,
					d.q[i*c.keyDim:][:c.keyDim], d.k[i*c.keyDim:][:c.keyDim], d.v[i*c.valDim:][:c.valDim],
					float32(math.Exp(float64(d.decay[i]))), d.beta[i])
			}
			c.check(t, o, got, d.s, want, state)
		})
	}
}

// check compares with the formula: float32 errors are fed back through the
// state, where each step damps them.
func (c deltaCase) check(t *testing.T, o Operations, got, gotState []float32, want, state []float64) {
	t.Helper()
	near{5e-6, 1}.check(t, o, "o", got, want, 1)
	near{5e-6, 0}.check(t, o, "state", gotState, state, 1)
}

func testDeltaChunk(t *testing.T, o Operations) {
	for _, c := range deltaCases {
		t.Run(c.name, func(t *testing.T) {
			d := c.operands()
			want, state := c.formula(d)
			c.check(t, o, c.chunks(o, d), d.s, want, state)
		})
	}
	t.Run("a row depends on earlier rows only", func(t *testing.T) { testDeltaPrefix(t, o) })
	t.Run("padded rows change nothing", func(t *testing.T) { testDeltaPadding(t, o) })
}

// chunks runs all rows in sub-chunks of 64 and changes d.s.
func (c deltaCase) chunks(o Operations, d deltaOperands) []float32 {
	got := unset(c.rows * c.valDim)
	for lo := 0; lo < c.rows; lo += 64 {
		hi := min(lo+64, c.rows)
		o.DeltaChunk(got[lo*c.valDim:hi*c.valDim], d.s, d.q[lo*c.keyDim:hi*c.keyDim], d.k[lo*c.keyDim:hi*c.keyDim],
			d.v[lo*c.valDim:hi*c.valDim], d.decay[lo:hi], d.beta[lo:hi])
	}
	return got
}

// testDeltaPrefix compares the first rows of a sub-chunk with a shorter one.
func testDeltaPrefix(t *testing.T, o Operations) {
	c := deltaCase{rows: 64, keyDim: 64, valDim: 32, slowest: -0.3, state: 0.2}
	all := c.chunks(o, c.operands())
	for _, rows := range []int{1, 2, 3, 33, 63} {
		d := c.operands()
		short := c
		short.rows = rows
		d.q, d.k, d.v = d.q[:rows*c.keyDim], d.k[:rows*c.keyDim], d.v[:rows*c.valDim]
		d.decay, d.beta = d.decay[:rows], d.beta[:rows]
		if got := short.chunks(o, d); !slices.Equal(got, all[:len(got)]) {
			t.Errorf("the first %d rows differ from those of a whole sub-chunk", rows)
		}
	}
}

// testDeltaPadding fills a sub-chunk up with rows of no decay, no beta and no
// key.
func testDeltaPadding(t *testing.T, o Operations) {
	c := deltaCase{rows: 40, keyDim: 64, valDim: 32, slowest: -0.3, state: 0.2}
	d, padded := c.operands(), c.operands()
	want := c.chunks(o, d)
	full := c
	full.rows = 64
	fill := func(v []float32, n int) []float32 { return append(v, make([]float32, n-len(v))...) }
	padded.q, padded.k = fill(padded.q, 64*c.keyDim), fill(padded.k, 64*c.keyDim)
	padded.v = fill(padded.v, 64*c.valDim)
	padded.decay, padded.beta = fill(padded.decay, 64), fill(padded.beta, 64)
	if got := full.chunks(o, padded); !slices.Equal(got[:len(want)], want) {
		t.Error("padding changed the rows before it")
	}
	if worst, _ := distance(padded.s, d.s); worst > 1e-6 {
		t.Errorf("padding changed the state by %v", worst)
	}
}
