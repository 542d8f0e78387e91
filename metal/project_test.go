package metal

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"calla/core/cpu"
)

const eps = 1e-6

var projections = []struct{ rows, columns int }{
	{1, 64}, {4, 64}, {5, 192}, {33, 320}, {64, 512}, {260, 576}, // smallest and ragged
	{96, 2048}, {64, 4096}, {2052, 2048}, // real
}

func TestProjectNormed(t *testing.T) {
	for _, s := range projections {
		for _, bits := range []int{4, 8} {
			t.Run(fmt.Sprintf("%d×%d, %d bits", s.rows, s.columns, bits), func(t *testing.T) {
				everyOrder(t, sized(s.rows < 10, s.rows > 2000), func(t *testing.T, r *rig) {
					h, norm, m := r.source.normal(s.columns, 2), r.source.around(s.columns, 1, 0.2), r.source.matrix(s.rows, s.columns, bits)
					x, want := make([]float32, s.columns), make([]float32, s.rows)
					cpu.RMSNorm(cpu.BF16, x, h, norm, eps)
					d := r.matrix(m)
					if bits == 8 {
						cpu.QMatVec(cpu.F32, want, m, x)
						y := r.buffer(4 * d.tiles() * tileRows)
						r.enc.RouteNormed(r.bf16s(h), r.bf16s(norm), d, y, eps)
						r.run()
						// One value of x that rounds the other way moves a product so far.
						within(t, "y", read32(y, s.rows), want, 0, 5e-4)
						return
					}
					cpu.QMatVec(cpu.BF16, want, m, x)
					y := r.buffer(2 * d.tiles() * tileRows)
					r.enc.ProjectNormed(r.bf16s(h), r.bf16s(norm), d, y, eps)
					r.run()
					within(t, "y", read16(y, s.rows), want, 1, 5e-4)
				})
			})
		}
	}
}

func TestProjectAdd(t *testing.T) {
	for _, s := range projections {
		t.Run(fmt.Sprintf("%d×%d", s.rows, s.columns), func(t *testing.T) {
			everyOrder(t, sized(s.rows < 10, s.rows > 2000), func(t *testing.T, r *rig) {
				m := r.source.matrix(align(s.rows, tileRows), s.columns, 4)
				x, want := r.source.normal(s.columns, 1), r.source.normal(m.Out, 1)
				h := r.bf16s(want)
				y := make([]float32, m.Out)
				cpu.QMatVec(cpu.BF16, y, m, x)
				cpu.Add(cpu.BF16, want, y)
				r.enc.ProjectAdd(r.bf16s(x), r.matrix(m), h)
				r.run()
				// Two roundings of numbers that may be larger than their sum.
				within(t, "h", read16(h, m.Out), want, 1, 1.0/128)
			})
		})
	}
}

func TestHead(t *testing.T) {
	for _, tt := range []struct {
		name           string
		vocab, columns int
		equal          []int // rows that are the same, and the largest
		nan            bool
		want           int32 // where not 0, else the twin's
	}{
		{"one token", 1, 64, nil, false, 0},
		{"a tile and a token", 5, 128, nil, false, 0},
		{"equals: the lowest", 1000, 256, []int{333, 334, 999}, false, 333},
		{"equals in two simdgroups", 40, 256, []int{3, 4}, false, 3},
		{"equals in two threadgroups", 1000, 256, []int{31, 32}, false, 31},
		{"not a number", 300, 128, nil, true, -1},
		{"many threadgroups", 40_000, 64, []int{39_999}, false, 39_999},
	} {
		t.Run(tt.name, func(t *testing.T) {
			everyOrder(t, sized(tt.vocab < 1000, tt.vocab > 10_000), func(t *testing.T, r *rig) {
				h, norm, m := r.source.normal(tt.columns, 1), r.source.around(tt.columns, 1, 0.1), r.source.matrix(tt.vocab, tt.columns, 4)
				x, want := make([]float32, tt.columns), make([]float32, tt.vocab)
				cpu.RMSNorm(cpu.BF16, x, h, norm, eps)
				for _, n := range tt.equal {
					likeliest(m, n, x)
				}
				if tt.nan {
					h[5] = float32(math.NaN())
				}
				cpu.QMatVec(cpu.F32, want, m, x)
				d := r.matrix(m)
				logits, parts, token := r.buffer(4*align(tt.vocab, tileRows)), r.buffer(8*headParts(tt.vocab)), r.buffer(4)
				r.enc.Head(r.bf16s(h), r.bf16s(norm), d, logits, parts, eps)
				r.enc.Argmax(parts, tt.vocab, token)
				r.run()
				got := read32(logits, tt.vocab)
				if !tt.nan {
					within(t, "logits", got, want, 0, 5e-4)
				}
				if got, want := int32(math.Float32bits(read32(token, 1)[0])), cpu.Argmax(got); got != want || tt.want != 0 && got != tt.want {
					t.Errorf("token %d, want %d of the device's logits and %d", got, want, tt.want)
				}
			})
		})
	}
}

// The largest logit is infinite, in one row or because all are.
func TestHeadOfInfinities(t *testing.T) {
	const vocab, columns = 300, 128
	for _, tt := range []struct {
		name     string
		infinity [2]byte // bfloat16, lowest byte first
		rows     []int
		want     int32 // where not 0, else the twin's
	}{
		{"infinity in one row", [2]byte{0x80, 0x7f}, []int{77}, -1},
		{"minus infinity in some rows", [2]byte{0x80, 0xff}, []int{0, 5, 299}, 0},
		{"minus infinity everywhere", [2]byte{0x80, 0xff}, nil, -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			everyOrder(t, small, func(t *testing.T, r *rig) {
				h, m := r.source.around(columns, 8, 1), r.source.matrix(vocab, columns, 4)
				for n := range vocab {
					row := rowOf(m, n)
					if tt.rows == nil || slices.Contains(tt.rows, n) {
						copy(row.biases, slices.Repeat(tt.infinity[:], columns/groupColumns))
					}
				}
				logits, parts, token := r.buffer(4*vocab), r.buffer(8*headParts(vocab)), r.buffer(4)
				r.enc.Head(r.bf16s(h), r.bf16s(slices.Repeat([]float32{1}, columns)), r.matrix(m), logits, parts, eps)
				r.enc.Argmax(parts, vocab, token)
				r.run()
				want := cpu.Argmax(read32(logits, vocab))
				if got := int32(math.Float32bits(read32(token, 1)[0])); got != want || tt.want < 0 && got != tt.want {
					t.Errorf("token %d, want %d of the device's logits", got, want)
				}
			})
		})
	}
}

// likeliest makes row n of m follow the signs of x.
func likeliest(m cpu.Matrix, n int, x []float32) {
	row := rowOf(m, n)
	for i := 0; i < len(row.scales); i += 2 {
		row.scales[i], row.scales[i+1] = 0, 0x3f    // 0.5
		row.biases[i], row.biases[i+1] = 0x70, 0xc0 // -3.75
	}
	for i := range row.codes {
		row.codes[i] = 0
		for j := range 2 {
			if x[2*i+j] > 0 {
				row.codes[i] |= 0xf << (4 * j)
			}
		}
	}
}
