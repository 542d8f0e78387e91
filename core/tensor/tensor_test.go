package tensor

import (
	"math"
	"testing"
)

func TestToBF16RoundsToTheNearest(t *testing.T) {
	for _, tt := range []struct {
		name string
		x    float32
		want uint16
	}{
		{"zero", 0, 0},
		{"negative zero", float32(math.Copysign(0, -1)), 0x8000},
		{"one", 1, 0x3F80},
		{"below half is cut", math.Float32frombits(0x3F807FFF), 0x3F80},
		{"above half is raised", math.Float32frombits(0x3F808001), 0x3F81},
		{"half to the even below", math.Float32frombits(0x3F808000), 0x3F80},
		{"half to the even above", math.Float32frombits(0x3F818000), 0x3F82},
		{"carry into the exponent", math.Float32frombits(0x3FFFFFFF), 0x4000},
		{"the largest overflows", math.MaxFloat32, 0x7F80},
		{"infinity", float32(math.Inf(-1)), 0xFF80},
		{"subnormal", math.Float32frombits(0x00018001), 0x0002},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ToBF16(tt.x); got != tt.want {
				t.Errorf("ToBF16(%v) = %#04x, want %#04x", tt.x, got, tt.want)
			}
		})
	}
}

// Each bfloat16 survives; halfway between two neighbours the even one wins, and
// a step to either side the nearer.
func TestBF16NeighboursExhaustively(t *testing.T) {
	for b := range uint32(1 << 16) {
		low := uint16(b)
		x := FromBF16(low)
		if x != x {
			if y := FromBF16(ToBF16(x)); y == y {
				t.Fatalf("NaN %#04x became the number %v", low, y)
			}
			continue
		}
		if got := ToBF16(x); got != low {
			t.Fatalf("%#04x came back as %#04x", low, got)
		}
		if math.IsInf(float64(x), 0) {
			continue
		}
		half := b<<16 | 0x8000
		for _, tt := range []struct {
			bits uint32
			want uint32
		}{{half - 1, b}, {half, b + b&1}, {half + 1, b + 1}} {
			if got := ToBF16(math.Float32frombits(tt.bits)); uint32(got) != tt.want {
				t.Fatalf("bits %#08x rounded to %#04x, want %#04x", tt.bits, got, tt.want)
			}
		}
	}
}

func TestNaNOfLowBitsStaysNaN(t *testing.T) {
	x := math.Float32frombits(0x7F800001)
	if y := RoundBF16(x); y == y {
		t.Errorf("RoundBF16(NaN) = %v", y)
	}
}

func TestElements(t *testing.T) {
	for _, tt := range []struct {
		name  string
		shape Shape
		want  int64
		ok    bool
	}{
		{"a number", Shape{}, 1, true},
		{"a matrix", Shape{3, 5}, 15, true},
		{"an empty axis", Shape{0, 1 << 40, 1 << 40}, 0, true},
		{"negative", Shape{-1, 2}, 0, false},
		{"overflow", Shape{1 << 32, 1 << 32}, 0, false},
		{"the largest that fits", Shape{1<<31 - 1, 1 << 32}, (1<<31 - 1) << 32, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got, ok := tt.shape.Elements(); ok != tt.ok || ok && got != tt.want {
				t.Errorf("%v has %d elements, %v; want %d, %v", tt.shape, got, ok, tt.want, tt.ok)
			}
		})
	}
}

func TestFloat32sReadsUnalignedBytes(t *testing.T) {
	b := []byte{0xFF, 0x80, 0x3F, 0x00, 0xC0} // a byte to skip, then 1 and −2
	got := Float32s(BF16, b[1:])
	if len(got) != 2 || got[0] != 1 || got[1] != -2 {
		t.Errorf("Float32s = %v, want [1 -2]", got)
	}
	b = []byte{0, 0, 0, 0x20, 0xC0}
	if got := Float32s(F32, b[1:]); len(got) != 1 || got[0] != -2.5 {
		t.Errorf("Float32s = %v, want [-2.5]", got)
	}
}

func TestDTypeNames(t *testing.T) {
	for _, d := range []DType{BF16, F32, U32} {
		if got, ok := ParseDType(d.String()); !ok || got != d {
			t.Errorf("ParseDType(%q) = %v, %v", d.String(), got, ok)
		}
	}
	if _, ok := ParseDType("F16"); ok {
		t.Error("ParseDType knows F16, which this model has nowhere")
	}
	if got := DType(9).String(); got != "DType(9)" {
		t.Errorf("DType(9) is %q", got)
	}
}
