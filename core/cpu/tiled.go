package cpu

import "unsafe"

const (
	// unitRows is how many rows of activations a matrix unit takes at once.
	unitRows = 16
	// unitBlock is the bytes that a quantisation group of them takes.
	unitBlock = 2*unitRows*groupSize + 2*unitRows*4
)

// tiled are the activations of the integer products as a matrix unit takes
// them: the same integers, scales and sums, in blocks of 16 rows and one
// quantisation group.
//
//	tile   [groups] blocks
//	block  [16, 64]uint8 the low bytes, [16, 64]int8 the high ones,
//	       [16]float32 scales, [16]float32 scale × Σ integers
//
// scripts/kernels says in which order the columns lie.
type tiled struct {
	groups int
	memory []float32 // [tiles, groups, unitBlock/4]
}

// newTiled lays rows of one width out in memory. Rows that fill up the last tile
// get scales of zero: whatever else lies there might be denormal, which is slow.
func newTiled(memory []float32, in, rows int) tiled {
	a := tiled{in / groupSize, memory}
	for t := rows; t%unitRows != 0; t++ {
		for g := range a.groups {
			_, scale := a.line(t, g)
			*scale, *sumOf(scale) = 0, 0
		}
	}
	return a
}

// tiledFloats returns the float32 values that rows rows of width in take.
func tiledFloats(in, rows int) int { return tasks(rows, unitRows) * (in / groupSize) * unitBlock / 4 }

// at returns the block of row t and group g.
func (a tiled) at(t, g int) unsafe.Pointer {
	return unsafe.Pointer(&a.memory[(t/unitRows*a.groups+g)*unitBlock/4])
}

// line returns where the low bytes of row t and group g lie, and its scale.
func (a tiled) line(t, g int) (low *byte, scale *float32) {
	block, row := a.at(t, g), t%unitRows
	return (*byte)(unsafe.Add(block, row*groupSize)), (*float32)(unsafe.Add(block, 2*unitRows*groupSize+4*row))
}

// take copies row from of b to row t.
func (a tiled) take(t int, b tiled, from int) {
	for g := range a.groups {
		to, toScale := a.line(t, g)
		low, scale := b.line(from, g)
		for plane := 0; plane <= unitRows*groupSize; plane += unitRows * groupSize {
			*(*[groupSize]byte)(unsafe.Add(unsafe.Pointer(to), plane)) = *(*[groupSize]byte)(unsafe.Add(unsafe.Pointer(low), plane))
		}
		*toScale = *scale
		*sumOf(toScale) = *sumOf(scale)
	}
}

// sumOf returns the sum that belongs to a scale of a block.
func sumOf(scale *float32) *float32 {
	return (*float32)(unsafe.Add(unsafe.Pointer(scale), 4*unitRows))
}

// matrixUnit multiplies tiles of activations with a panel.
type matrixUnit struct {
	quantise func(low *byte, scale, x *float32, groups int)
	// tiles take 4, 8, 12 and 16 rows of each tile. A row comes out the same of
	// each.
	tiles [unitRows / 4]unitKernel
}

// unitKernel adds to sums, [tiles, 16, panel], products of the first strips of
// 16 rows of a panel. Tiles of activations lie step bytes apart, and products is
// memory for the integers of two strips.
type unitKernel func(sums *float32, products *int32, x, codes, params *byte, groups, strips, tiles, step int)

// prepare makes row t of a from columns lo to hi of a row x, which lie between
// quantisation groups.
func (u *matrixUnit) prepare(a tiled, t, lo, hi int, x []float32) {
	low, scale := a.line(t, lo/groupSize)
	u.quantise(low, scale, &x[lo], (hi-lo)/groupSize)
}

// multiply adds groups of a panel, from group g on, to the sums of count rows.
func (u *matrixUnit) multiply(s *panelScratch, a tiled, count, g, groups, strips int) {
	call := func(t, rows, tiles int) {
		u.tiles[(rows+3)/4-1](&s.sums[t*s.width], (*int32)(unsafe.Pointer(&s.products[0])), (*byte)(a.at(t, g)),
			(*byte)(unsafe.Pointer(&s.codes[0])), (*byte)(unsafe.Pointer(&s.params[2*g*s.width])),
			groups, strips, tiles, a.groups*unitBlock)
	}
	whole := count / unitRows
	if whole > 0 {
		call(0, unitRows, whole)
	}
	if rest := count % unitRows; rest > 0 {
		call(whole*unitRows, rest, 1)
	}
}
