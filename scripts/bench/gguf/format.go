package main

import (
	"encoding/binary"
	"math"
)

// block is how many values of a row llama.cpp's formats quantise together. Two
// of them lie in one of our quantisation groups.
const block = 32

// format is one of GGUF's tensor types.
type format struct {
	id    uint32
	size  int // bytes of a block
	write func(dst []byte, codes []byte, scale, bias float32)
}

// rowBytes returns the bytes of a row of n values.
func (f *format) rowBytes(n int) int { return n / block * f.size }

// formats are those that a 4-bit matrix can be written in. q4_1 has the very
// values of the checkpoint, scale and bias in half precision; so have f16 and
// f32 to their own precision. q4_0 has no bias and is rounded anew: the fastest
// format that llama.cpp has for four bits.
var formats = map[string]*format{
	"q4_0": {id: 2, size: 2 + block/2, write: writeQ40},
	"q4_1": {id: 3, size: 4 + block/2, write: writeQ41},
	"q8_0": {id: 8, size: 2 + block, write: writeQ80},
	"f16":  {id: 1, size: 2 * block, write: writeF16},
	"f32":  {id: 0, size: 4 * block, write: writeF32},
}

var f32 = formats["f32"]

// writeQ40 writes w = d·(q-8). As llama.cpp's own quantiser does it, d is such
// that the value farthest from zero is q = 0 exactly.
func writeQ40(dst, codes []byte, scale, bias float32) {
	var far float32
	for _, c := range codes {
		if w := scale*float32(c) + bias; abs(w) > abs(far) {
			far = w
		}
	}
	d, inverse := far/-8, float32(0)
	if d != 0 {
		inverse = 1 / d
	}
	// A group has sixteen values at most: round each once.
	var table [256]byte
	for c := range 16 {
		table[c] = byte(min(15, int((scale*float32(c)+bias)*inverse+8.5)))
	}
	binary.LittleEndian.PutUint16(dst, half(d))
	pack(dst[2:], codes, &table)
}

// writeQ41 writes w = d·q + m: what the checkpoint has already.
func writeQ41(dst, codes []byte, scale, bias float32) {
	binary.LittleEndian.PutUint16(dst, half(scale))
	binary.LittleEndian.PutUint16(dst[2:], half(bias))
	pack(dst[4:], codes, &identity)
}

// writeQ80 writes w = d·q, q of eight bits.
func writeQ80(dst, codes []byte, scale, bias float32) {
	var far float32
	for _, c := range codes {
		far = max(far, abs(scale*float32(c)+bias))
	}
	d := far / 127
	binary.LittleEndian.PutUint16(dst, half(d))
	for i, c := range codes {
		if d != 0 {
			dst[2+i] = byte(int8(math.Round(float64((scale*float32(c) + bias) / d))))
		}
	}
}

func writeF16(dst, codes []byte, scale, bias float32) {
	for i, c := range codes {
		binary.LittleEndian.PutUint16(dst[2*i:], half(scale*float32(c)+bias))
	}
}

func writeF32(dst, codes []byte, scale, bias float32) {
	for i, c := range codes {
		binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(scale*float32(c)+bias))
	}
}

var identity = func() (t [256]byte) {
	for i := range t {
		t[i] = byte(i)
	}
	return t
}()

// pack writes 4-bit codes as ggml has them: the first half of a block in the
// low nibbles, the second in the high ones.
func pack(dst, codes []byte, table *[256]byte) {
	for i := range block / 2 {
		dst[i] = table[codes[i]] | table[codes[i+block/2]]<<4
	}
}

func abs(x float32) float32 { return math.Float32frombits(math.Float32bits(x) &^ (1 << 31)) }

// half returns the bits of the float16 nearest to x, of two equally near the
// even one. What is too large becomes infinite.
func half(x float32) uint16 {
	u := math.Float32bits(x)
	sign, u := uint16(u>>16)&0x8000, u&0x7FFFFFFF
	switch {
	case u > 0x7F800000:
		return sign | 0x7E00
	case u >= 0x477FF000: // rounds to 2^16 or more
		return sign | 0x7C00
	case u < 0x38800000: // subnormal: multiples of 2^-24
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(u))*(1<<24)))
	}
	u += 0xFFF + u>>13&1
	return sign | uint16(u>>13-(127-15)<<10)
}
