package tensor

import "math"

// FromBF16 widens bfloat16 bits. Every bfloat16 is a float32.
func FromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// ToBF16 returns the bits of the bfloat16 nearest to x; of two equally near the
// even one. NaN stays NaN.
func ToBF16(x float32) uint16 {
	u := math.Float32bits(x)
	if x != x {
		return uint16(u>>16) | 0x40 // keep it a NaN where only low bits were set
	}
	return uint16((u + 0x7FFF + u>>16&1) >> 16)
}

// RoundBF16 returns the bfloat16 nearest to x, widened again.
func RoundBF16(x float32) float32 { return FromBF16(ToBF16(x)) }
