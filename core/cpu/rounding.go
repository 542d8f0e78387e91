package cpu

import (
	"encoding/binary"
	"math"

	"calla/core/tensor"
)

// Rounding says what the values between operations are rounded to.
type Rounding uint8

const (
	// BF16 rounds linear outputs, norms, activations, the residual stream, the
	// KV cache and the conv state to bfloat16, as the checkpoint's authors ran
	// it. Logits stay float32: rounding them would only make ties.
	BF16 Rounding = iota
	// F32 rounds nothing. It is for comparison with float32 references.
	F32
)

func (r Rounding) String() string {
	if r == F32 {
		return "f32"
	}
	return "bf16"
}

// value rounds one value.
func (r Rounding) value(x float32) float32 {
	if r == F32 {
		return x
	}
	return tensor.RoundBF16(x)
}

// values rounds x in place.
func (r Rounding) values(x []float32) {
	if r == F32 {
		return
	}
	for i, v := range x {
		x[i] = tensor.RoundBF16(v)
	}
}

// cell returns the bytes that one stored value takes.
func (r Rounding) cell() int {
	if r == F32 {
		return 4
	}
	return 2
}

// pack stores src in len(src) cells of dst.
func (r Rounding) pack(dst []byte, src []float32) {
	if r == F32 {
		dst = dst[:4*len(src)]
		for i, v := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(v))
		}
		return
	}
	dst = dst[:2*len(src)]
	for i, v := range src {
		binary.LittleEndian.PutUint16(dst[2*i:], tensor.ToBF16(v))
	}
}

// unpack reads len(dst) cells of src.
func (r Rounding) unpack(dst []float32, src []byte) {
	if r == F32 {
		src = src[:4*len(dst)]
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
		return
	}
	src = src[:2*len(dst)]
	for i := range dst {
		dst[i] = tensor.FromBF16(binary.LittleEndian.Uint16(src[2*i:]))
	}
}
