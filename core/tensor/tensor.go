// Package tensor names the element types of a checkpoint and converts between
// them. Shapes are row-major; values are little-endian, as safetensors has them.
package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// DType is an element type. The zero value is none.
type DType uint8

// The element types that a checkpoint of this model holds.
const (
	BF16 DType = iota + 1
	F32
	U32
)

var dtypes = [...]struct {
	name string
	size int
}{
	BF16: {"BF16", 2},
	F32:  {"F32", 4},
	U32:  {"U32", 4},
}

// ParseDType returns the type that safetensors calls name.
func ParseDType(name string) (DType, bool) {
	for d := BF16; int(d) < len(dtypes); d++ {
		if dtypes[d].name == name {
			return d, true
		}
	}
	return 0, false
}

func (d DType) String() string {
	if d == 0 || int(d) >= len(dtypes) {
		return fmt.Sprintf("DType(%d)", uint8(d))
	}
	return dtypes[d].name
}

// Size returns the bytes of one element.
func (d DType) Size() int { return dtypes[d].size }

// Shape is the extent of each axis, the slowest first.
type Shape []int

func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, n := range s {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprint(&b, n)
	}
	b.WriteByte(']')
	return b.String()
}

// Elements returns the product of the extents, and false where it is negative
// or does not fit an int64.
func (s Shape) Elements() (int64, bool) {
	n := int64(1)
	for _, x := range s {
		if x < 0 {
			return 0, false
		}
		if x != 0 && n > math.MaxInt64/int64(x) {
			return 0, false
		}
		n *= int64(x)
	}
	return n, true
}

// Float32s copies little-endian values of type d out of b, which need not be
// aligned. It panics for U32, which holds codes and no numbers.
func Float32s(d DType, b []byte) []float32 {
	out := make([]float32, len(b)/d.Size())
	switch d {
	case BF16:
		for i := range out {
			out[i] = FromBF16(binary.LittleEndian.Uint16(b[2*i:]))
		}
	case F32:
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	default:
		panic("tensor: " + d.String() + " is no number")
	}
	return out
}
