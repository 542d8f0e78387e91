package cpu

import "unsafe"

// Activations of the integer products: rows of 16-bit integers under one power
// of two a quantisation group. A bfloat16 within 2⁷ of the largest of its group
// is exact; of any other value the error is at most 2⁻¹⁵ of that largest.
//
//	row  [groups/2, 4, 16, 2]int16, then [groups]float32 scales, then
//	     [groups]float32 scale × Σ integers
//
// scripts/kernels says why the integers lie in that order. A group without a
// second lies in half a block, and scales fill up to 16: all the rest is zero.
type activations struct {
	rowShape
	memory []float32 // [rows, stride/4]
}

// rowShape says where the parts of a row lie, in bytes.
type rowShape struct{ groups, scale, sum, stride int }

const blockBytes = 256 // of two groups' integers

func shapeOf(in int) rowShape {
	s := rowShape{groups: in / groupSize}
	padded := (s.groups + 15) &^ 15
	s.scale = (s.groups + 1) / 2 * blockBytes
	s.sum = s.scale + 4*padded
	s.stride = (s.sum + 4*padded + 63) &^ 63
	if s.stride/64%2 == 0 {
		s.stride += 64 // so that rows don't all meet in the same lines of a cache
	}
	return s
}

// newActivations lays rows of one width out in memory.
func newActivations(memory []float32, in int) activations {
	return activations{rowShape: shapeOf(in), memory: memory}
}

// activationFloats returns the float32 values that rows rows of width in take.
func activationFloats(in, rows int) int { return rows * shapeOf(in).stride / 4 }

func (a activations) row(t int) unsafe.Pointer {
	return unsafe.Pointer(&a.memory[t*a.stride/4 : (t+1)*a.stride/4][0])
}

// clearRest zeroes what lies around a row's groups.
func (a activations) clearRest(t int) {
	row := a.memory[t*a.stride/4:][:a.stride/4]
	if a.groups%2 == 1 {
		last := row[a.scale/4-blockBytes/4:]
		for i := range 4 {
			clear(last[16*i+8 : 16*i+16])
		}
	}
	clear(row[a.scale/4+a.groups : a.sum/4])
	clear(row[a.sum/4+a.groups:])
}
