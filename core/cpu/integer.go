package cpu

import (
	"unsafe"
)

// integerProducts multiply matrices with activations: the codes of a group and
// its integers in 32 bits, exactly, then scale × dot + bias × Σ x in float32.
// Outputs are not rounded.
type integerProducts struct {
	quantise         func(t *int16, scale, sum, x *float32, groups int)
	matVec4, matVec8 func(y *float32, codes, scales, biases *byte, t *int16, scale, sum *float32, groups, rows int)

	unpack4, unpack8 func(codes *byte, rows *[8]*byte, offset, groups int)
	unpackParams     func(params *byte, rows *[8]*byte, groups int)
	fetch            func(x *byte, n int)
	panel, strip     int // rows of one, and those that are unpacked together
	// tiles multiply a panel with 1, 2, ... rows. A row comes out the same of
	// each. A matrix unit, where it isn't nil, does so in their place.
	tiles []tileKernel
	unit  *matrixUnit
}

type tileKernel func(sums *float32, x *[maxTile]*byte, codes, params *byte, groups, pair, scale, sum int)

// layOut gives a batch its integers in memory.
func (k *integerProducts) layOut(b *rowBatch, memory []float32) {
	if k.unit != nil {
		b.tiled = newTiled(memory, b.in, b.n)
	} else {
		b.a = newActivations(memory, b.in)
	}
}

// prepareRow makes columns lo to hi of row t of a batch, which lie between
// quantisation groups.
func (k *integerProducts) prepareRow(b rowBatch, t, lo, hi int) {
	x := b.x[t*b.in:][:b.in]
	if k.unit != nil {
		k.unit.prepare(b.tiled, t, lo, hi, x)
		return
	}
	if lo == 0 {
		b.a.clearRest(t)
	}
	k.prepare(b.a, t, lo, hi, x)
}

// prepare makes row t of a from columns lo to hi of a row x, which lie between
// quantisation groups.
func (k *integerProducts) prepare(a activations, t, lo, hi int, x []float32) {
	from, end := lo/groupSize, hi/groupSize
	if from%2 == 1 {
		k.prepareGroups(a, t, from, 1, x)
		from++
	}
	if from < end {
		k.prepareGroups(a, t, from, end-from, x)
	}
}

// prepareGroups makes n groups from an even one on, or one odd one.
func (k *integerProducts) prepareGroups(a activations, t, g, n int, x []float32) {
	row := a.row(t)
	k.quantise(
		(*int16)(unsafe.Add(row, g/2*blockBytes+g%2*blockBytes/8)),
		(*float32)(unsafe.Add(row, a.scale+4*g)),
		(*float32)(unsafe.Add(row, a.sum+4*g)),
		&x[g*groupSize], n)
}

// matVec makes rows lo to hi of W x for row t of a.
func (k *integerProducts) matVec(y []float32, w Matrix, lo, hi int, a activations, t int) {
	row, params := a.row(t), 2*a.groups
	kernel := k.matVec4
	if w.Bits == 8 {
		kernel = k.matVec8
	}
	kernel(&y[lo], &w.Codes[lo*w.codeStride()], &w.Scales[lo*params], &w.Biases[lo*params],
		(*int16)(row), (*float32)(unsafe.Add(row, a.scale)), (*float32)(unsafe.Add(row, a.sum)),
		a.groups, hi-lo)
}
