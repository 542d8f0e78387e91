package cpu

import (
	"unsafe"

	"calla/core/tensor"
)

// integerProducts multiply matrices with activations: the codes of a group and
// its integers in 32 bits, exactly, then scale × dot + bias × Σ x in float32.
// Outputs are not rounded.
type integerProducts struct {
	quantise         func(t *int16, scale, sum, x *float32, groups int)
	matVec4, matVec8 func(y *float32, codes, scales, biases *byte, t *int16, scale, sum *float32, groups, rows int)

	unpack4, unpack8, unpackParams func(panel *byte, rows *[8]*byte, groups int)
	// tiles multiply a panel with 1, 2, ... rows. A row comes out the same of
	// each.
	tiles []tileKernel
}

type tileKernel func(y, x *[maxTile]*byte, panel *byte, groups, scale, sum int)

const (
	maxTile = 6 // rows of the largest tile
	// panelRows is how many rows of a matrix a panel holds; see scripts/kernels
	// for how.
	panelRows  = 32
	panelCodes = 32 * panelRows * 4
	panelGroup = panelCodes + 2*panelRows*4 // bytes of a group of columns
)

// panelFloats returns the float32 values that a panel of width in takes.
func panelFloats(in int) int { return in / groupSize * panelGroup / 4 }

// panelScratch is one goroutine's.
type panelScratch struct {
	panel []float32
	tile  []float32 // [maxTile, panelRows]: outputs behind a matrix's last
	rows  [8]*byte
	x, y  [maxTile]*byte
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

// unpack fills the panel with rows n to n+31 of a matrix. Behind its end the
// last row is repeated.
func (k *integerProducts) unpack(s *panelScratch, w Matrix, n int) {
	kernel := k.unpack4
	if w.Bits == 8 {
		kernel = k.unpack8
	}
	groups := w.In / groupSize
	panel := unsafe.Pointer(&s.panel[0])
	for strip := range panelRows / 8 {
		at := func(array []byte, stride int) *[8]*byte {
			for i := range s.rows {
				s.rows[i] = &array[min(n+8*strip+i, w.Out-1)*stride]
			}
			return &s.rows
		}
		kernel((*byte)(unsafe.Add(panel, 32*strip)), at(w.Codes, w.codeStride()), groups)
		for i, params := range [][]byte{w.Scales, w.Biases} {
			to := panelCodes + 4*panelRows*i + 32*strip
			if eights := groups &^ 7; eights > 0 {
				k.unpackParams((*byte)(unsafe.Add(panel, to)), at(params, 2*groups), eights)
			}
			for g := groups &^ 7; g < groups; g++ {
				for j := range 8 {
					row := min(n+8*strip+j, w.Out-1)
					s.panel[(g*panelGroup+to)/4+j] = bf16At(params, row*groups+g)
				}
			}
		}
	}
}

func bf16At(b []byte, i int) float32 {
	return tensor.FromBF16(uint16(b[2*i]) | uint16(b[2*i+1])<<8)
}

// multiply makes columns n to n+31, or to the last, of y = x Wᵀ: a row of y for
// each of count rows of a, or for those that rows names.
func (k *integerProducts) multiply(s *panelScratch, y []float32, w Matrix, n int, a activations, rows []int32, count int) {
	k.unpack(s, w, n)
	width := min(panelRows, w.Out-n)
	for from := 0; from < count; {
		size := k.tileSize(count - from)
		for i := range size {
			row := from + i
			if rows != nil {
				row = int(rows[from+i])
			}
			s.x[i] = (*byte)(a.row(row))
			if out := &s.y[i]; width == panelRows {
				*out = (*byte)(unsafe.Pointer(&y[(from+i)*w.Out+n]))
			} else {
				*out = (*byte)(unsafe.Pointer(&s.tile[i*panelRows]))
			}
		}
		k.tiles[size-1](&s.y, &s.x, (*byte)(unsafe.Pointer(&s.panel[0])), a.groups, a.scale, a.sum)
		if width < panelRows {
			for i := range size {
				copy(y[(from+i)*w.Out+n:][:width], s.tile[i*panelRows:])
			}
		}
		from += size
	}
}

// tileSize cuts rows into tiles of about the same size.
func (k *integerProducts) tileSize(rows int) int {
	most := len(k.tiles)
	n := (rows + most - 1) / most
	return (rows + n - 1) / n
}
