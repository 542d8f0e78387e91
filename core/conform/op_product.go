package conform

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"calla/core/tensor"
)

// matrix returns a random matrix whose arrays start at odd addresses, as those
// of the published shards do. Half of the scales are negative.
func (s source) matrix(out, in, bits int) Matrix {
	odd := func(n int) []byte { return make([]byte, n+1)[1:] }
	m := Matrix{Codes: odd(out * in * bits / 8), Scales: odd(out * in / 64 * 2), Biases: odd(out * in / 64 * 2), Out: out, In: in, Bits: bits}
	for i := range m.Codes {
		m.Codes[i] = byte(s.Uint32())
	}
	levels := float64(int(1)<<bits - 1)
	for i := 0; i < len(m.Scales); i += 2 {
		scale := (0.5 + s.Float64()) / levels
		if s.IntN(2) == 0 {
			scale = -scale
		}
		binary.LittleEndian.PutUint16(m.Scales[i:], tensor.ToBF16(float32(scale)))
		binary.LittleEndian.PutUint16(m.Biases[i:], tensor.ToBF16(float32(-scale*levels/2*(0.8+0.4*s.Float64()))))
	}
	return m
}

// at returns one value of the matrix, by the definition of its layout: codes in
// 32-bit words, the lowest bits first.
func (m Matrix) at(row, column int) float64 {
	i := row*m.In + column
	perWord := 32 / m.Bits
	word := binary.LittleEndian.Uint32(m.Codes[i/perWord*4:])
	code := word >> (m.Bits * (i % perWord)) & (1<<m.Bits - 1)
	group := i / 64
	scale := tensor.FromBF16(binary.LittleEndian.Uint16(m.Scales[2*group:]))
	bias := tensor.FromBF16(binary.LittleEndian.Uint16(m.Biases[2*group:]))
	return float64(scale)*float64(code) + float64(bias)
}

// times returns the products of the matrix with rows of x, and the largest sum
// of magnitudes that one of them adds up.
func (m Matrix) times(x []float32) (y []float64, magnitude float64) {
	values := make([]float64, m.In)
	y = make([]float64, len(x)/m.In*m.Out)
	for n := range m.Out {
		for k := range values {
			values[k] = m.at(n, k)
		}
		for t := 0; t*m.In < len(x); t++ {
			var sum, all float64
			for k, v := range values {
				p := v * float64(x[t*m.In+k])
				sum, all = sum+p, all+math.Abs(p)
			}
			y[t*m.Out+n], magnitude = sum, max(magnitude, all)
		}
	}
	return y, magnitude
}

var matrixShapes = []struct{ out, in, bits int }{
	{1, 64, 4}, {1, 64, 8}, {3, 192, 4}, {5, 128, 8}, {7, 320, 4}, {33, 576, 4}, // smallest and ragged
	{32, 2048, 4}, {512, 2048, 4}, {2048, 512, 4}, {2048, 4096, 4}, {1, 2048, 8}, {256, 2048, 8}, // real
}

func testQMatVec(t *testing.T, o Operations) {
	for _, s := range matrixShapes {
		t.Run(fmt.Sprintf("out=%d,in=%d,bits=%d", s.out, s.in, s.bits), func(t *testing.T) {
			r := newSource(s.out, s.in)
			m, x := r.matrix(s.out, s.in, s.bits), r.normal(s.in, 1)
			want, magnitude := m.times(x)
			y := unset(s.out)
			o.QMatVec(y, m, x)
			near{1e-6, 1}.check(t, o, "y", y, want, magnitude)
		})
	}
}

func testQMatMul(t *testing.T, o Operations) {
	for _, s := range matrixShapes {
		counts := []int{1, 2, 3, 17}
		switch size := s.out * s.in; {
		case size < 1<<15:
			counts = Ragged
		case size*17 > 1<<23:
			counts = []int{1, 4}
		}
		for _, rows := range counts {
			t.Run(fmt.Sprintf("out=%d,in=%d,bits=%d,rows=%d", s.out, s.in, s.bits, rows), func(t *testing.T) {
				r := newSource(s.out, s.in, rows)
				m, x := r.matrix(s.out, s.in, s.bits), r.normal(rows*s.in, 1)
				want, magnitude := m.times(x)
				y := unset(rows * s.out)
				o.QMatMul(y, m, x, rows)
				near{1e-6, 1}.check(t, o, "y", y, want, magnitude)

				// The last row alone has the bits that it has in company.
				alone := unset(s.out)
				o.QMatMul(alone, m, x[(rows-1)*s.in:], 1)
				if !slices.Equal(alone, y[(rows-1)*s.out:]) {
					t.Error("a row's product depends on the rows beside it")
				}
			})
		}
	}
}

func testEmbed(t *testing.T, o Operations) {
	for _, s := range []struct{ out, in int }{{1, 64}, {50, 192}, {100, 2048}} {
		r := newSource(s.out, s.in)
		m := r.matrix(s.out, s.in, 4)
		for _, rows := range Ragged {
			tokens := make([]int32, rows)
			var want []float64
			for i := range tokens {
				tokens[i] = int32((s.out - 1 + 7*i) % s.out)
				for k := range s.in {
					want = append(want, m.at(int(tokens[i]), k))
				}
			}
			h := unset(len(want))
			o.Embed(h, m, tokens)
			near{1e-7, 1}.check(t, o, fmt.Sprintf("%s, %d rows", shape(s.out, s.in), rows), h, want, 1)
		}
	}
}
