package main

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
)

// widen reads a float16 by its definition.
func widen(h uint16) float64 {
	sign, exponent, fraction := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch exponent {
	case 0:
		return sign * math.Ldexp(fraction, -24)
	case 31:
		return sign * math.Inf(1)
	}
	return sign * math.Ldexp(1024+fraction, exponent-25)
}

func TestHalf(t *testing.T) {
	for _, tt := range []struct {
		name string
		x    float32
		want uint16
	}{
		{"zero", 0, 0},
		{"negative zero", float32(math.Copysign(0, -1)), 0x8000},
		{"one", 1, 0x3C00},
		{"minus two", -2, 0xC000},
		{"the largest", 65504, 0x7BFF},
		{"just below what rounds up to infinity", 65519, 0x7BFF},
		{"too large", 65520, 0x7C00},
		{"the smallest normal", 0x1p-14, 0x0400},
		{"the largest subnormal rounds up to normal", 0x1.FFFp-15, 0x0400},
		{"the smallest subnormal", 0x1p-24, 1},
		{"half of it is a tie to even", 0x1p-25, 0},
		{"a tie to even, up", 1 + 3*0x1p-11, 0x3C02},
		{"a tie to even, down", 1 + 0x1p-11, 0x3C00},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := half(tt.x); got != tt.want {
				t.Errorf("half(%g) = %#04x, want %#04x", tt.x, got, tt.want)
			}
		})
	}
}

// TestHalfIsNearest compares with the neighbours of what was chosen.
func TestHalfIsNearest(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100000 {
		x := float32(r.NormFloat64() * math.Exp2(float64(r.IntN(44)-30)))
		h := half(x)
		got := math.Abs(widen(h) - float64(x))
		if h&0x7FFF == 0x7C00 {
			continue
		}
		for _, other := range []uint16{h - 1, h + 1} {
			if h&0x7FFF == 0 && other == h-1 {
				continue
			}
			if d := math.Abs(widen(other) - float64(x)); d < got {
				t.Fatalf("half(%g) = %#04x, but %#04x is nearer", x, h, other)
			}
		}
	}
}

// read is the inverse of a format, from ggml's definition of its blocks.
var read = map[string]func(b []byte) [block]float64{
	"q4_0": func(b []byte) (out [block]float64) {
		for i := range block / 2 {
			out[i] = number(b) * (float64(b[2+i]&15) - 8)
			out[i+16] = number(b) * (float64(b[2+i]>>4) - 8)
		}
		return out
	},
	"q4_1": func(b []byte) (out [block]float64) {
		for i := range block / 2 {
			out[i] = number(b)*float64(b[4+i]&15) + number(b[2:])
			out[i+16] = number(b)*float64(b[4+i]>>4) + number(b[2:])
		}
		return out
	},
	"q8_0": func(b []byte) (out [block]float64) {
		for i := range block {
			out[i] = number(b) * float64(int8(b[2+i]))
		}
		return out
	},
	"f16": func(b []byte) (out [block]float64) {
		for i := range block {
			out[i] = number(b[2*i:])
		}
		return out
	},
	"f32": func(b []byte) (out [block]float64) {
		for i := range block {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
		return out
	},
}

func number(b []byte) float64 { return widen(binary.LittleEndian.Uint16(b)) }

// TestFormats writes blocks of 4-bit codes and reads them again.
func TestFormats(t *testing.T) {
	// The largest error, as a part of the largest value: half a step, a whole one
	// at the end of q4_0 that has one step less, and that of scales in half
	// precision.
	tolerance := map[string]float64{"q4_0": 1.01 / 8, "q4_1": 2e-3, "q8_0": 0.6 / 127, "f16": 0x1p-11, "f32": 0}
	for name, f := range formats {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			for range 200 {
				codes := make([]byte, block)
				for i := range codes {
					codes[i] = byte(r.IntN(16))
				}
				scale := float32(0.003 + 0.01*r.Float64()) // a normal number in half precision
				if r.IntN(2) == 0 {
					scale = -scale
				}
				bias := -scale * float32(7.5+r.NormFloat64())
				got := make([]byte, f.size)
				f.write(got, codes, scale, bias)
				compareBlock(t, read[name](got), codes, scale, bias, tolerance[name])
			}
		})
	}
}

func compareBlock(t *testing.T, got [block]float64, codes []byte, scale, bias float32, tolerance float64) {
	t.Helper()
	largest := 0.0
	for _, c := range codes {
		largest = max(largest, math.Abs(float64(scale*float32(c)+bias)))
	}
	for i, c := range codes {
		want := float64(scale*float32(c) + bias)
		if math.Abs(got[i]-want) > tolerance*largest {
			t.Fatalf("value %d of scale %g, bias %g, code %d reads %g, want %g", i, scale, bias, c, got[i], want)
		}
	}
}

func TestBlockOfZeros(t *testing.T) {
	for name, f := range formats {
		got := make([]byte, f.size)
		f.write(got, make([]byte, block), 0, 0)
		for i, v := range read[name](got) {
			if v != 0 {
				t.Errorf("%s: value %d of zeros reads %g", name, i, v)
			}
		}
	}
}
