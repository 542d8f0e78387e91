package cpu

import (
	"unsafe"

	"calla/core/tensor"
)

const (
	maxTile = 6 // rows of the largest tile
	// A panel is some rows of a matrix that are multiplied at once with all
	// activations; scripts/kernels says how they lie.
	panelRows = 32
	// unitPanel is a matrix unit's panel.
	unitPanel = 64
	// panelCodes is the bytes that a group of columns takes: of 32 rows as words,
	// of 64 as bytes.
	panelCodes = 2 * groupSize * panelRows
	// panelGroups is how many groups are unpacked at a time: with some rows of
	// activations they fit the nearest cache. Even, as blocks of two are.
	panelGroups = 4
)

// panelScratch is one goroutine's.
type panelScratch struct {
	width    int       // rows of a panel
	codes    []float32 // panelGroups groups
	params   []float32 // of all groups: [groups, 2, width]
	sums     []float32 // [rows, width]
	products []float32 // of a matrix unit
	// rows are the panel's rows of codes, then of scales or biases; activations
	// those of the call.
	rows        [unitPanel / 8][8]*byte
	activations []*byte
}

func (s *panelScratch) layOut(v *carver, in, rows int) {
	s.codes = v.aligned(panelGroups * panelCodes / 4)
	s.params = v.aligned(in / groupSize * 2 * unitPanel)
	s.sums = v.aligned(tasks(rows, unitRows) * unitRows * unitPanel)
	s.products = v.aligned(2 * panelGroups * 2 * unitRows * unitRows)
	s.activations = make([]*byte, rows+maxTile)
}

// panel is rows n and on of a matrix; without rows, none.
type panel struct {
	Matrix
	n int
}

// multiply makes one panel's columns of y = x Wᵀ, from n on or to the last: a
// row of y for each of b. Meanwhile it fetches the panel that will be wanted
// next.
func (k *integerProducts) multiply(s *panelScratch, y []float32, w Matrix, n int, b rowBatch, next panel) {
	s.width = k.panel
	width := min(s.width, w.Out-n)
	clear(s.sums[:b.n*s.width])
	if k.unit == nil {
		s.pointToActivations(b)
	}
	k.unpackParamsOf(s, w, n)
	s.pointTo(w.Codes, w.codeStride(), n, w.Out)
	all := w.In / groupSize
	for g := 0; g < all; g += panelGroups {
		groups := min(panelGroups, all-g)
		k.fetchShare(next, g, groups, all)
		k.unpackCodes(s, w, g, groups)
		if k.unit != nil {
			k.unit.multiply(s, b.tiled, b.n, g, groups, tasks(width, unitRows))
		} else {
			k.multiplyGroups(s, b.a, b.n, g, groups)
		}
	}
	for i := range b.n {
		copy(y[i*w.Out+n:][:width], s.sums[i*s.width:])
	}
}

// multiplyGroups adds groups of a panel, from group g on, to the sums of count
// rows.
func (k *integerProducts) multiplyGroups(s *panelScratch, a activations, count, g, groups int) {
	for from := 0; from < count; {
		size := k.tileSize(count - from)
		k.tiles[size-1](&s.sums[from*s.width], (*[maxTile]*byte)(s.activations[from:]),
			(*byte)(unsafe.Pointer(&s.codes[0])), (*byte)(unsafe.Pointer(&s.params[2*g*s.width])),
			groups, g/2*blockBytes, a.scale+4*g, a.sum+4*g)
		from += size
	}
}

// tileSize cuts rows into tiles of about the same size.
func (k *integerProducts) tileSize(rows int) int {
	most := len(k.tiles)
	n := (rows + most - 1) / most
	return (rows + n - 1) / n
}

// fetchShare asks for as much of a panel as groups are of all, and first for its
// scales and biases.
func (k *integerProducts) fetchShare(p panel, g, groups, all int) {
	rows := min(k.panel, p.Out-p.n)
	if rows <= 0 {
		return
	}
	if g == 0 {
		params := 2 * p.In / groupSize
		k.fetch(&p.Scales[p.n*params], rows*params)
		k.fetch(&p.Biases[p.n*params], rows*params)
	}
	size := rows * p.codeStride()
	from, to := size*g/all, size*(g+groups)/all
	k.fetch(&p.Codes[p.n*p.codeStride()+from], to-from)
}

// pointToActivations sets s.activations to the rows of b.
func (s *panelScratch) pointToActivations(b rowBatch) {
	for i := range b.n {
		row := i
		if b.index != nil {
			row = int(b.index[i])
		}
		s.activations[i] = (*byte)(b.a.row(row))
	}
}

// pointTo sets s.rows to the rows of a panel, n and on, of an array. Behind the
// end the last row is repeated.
func (s *panelScratch) pointTo(array []byte, stride, n, end int) {
	for i := range s.width {
		s.rows[i/8][i%8] = &array[min(n+i, end-1)*stride]
	}
}

func (k *integerProducts) unpackCodes(s *panelScratch, w Matrix, g, groups int) {
	kernel := k.unpack4
	if w.Bits == 8 {
		kernel = k.unpack8
	}
	for row := 0; row < s.width; row += k.strip {
		kernel((*byte)(unsafe.Pointer(&s.codes[row])), &s.rows[row/8], g*groupSize*w.Bits/8, groups)
	}
}

// unpackParamsOf widens scales and biases; the kernel takes eight groups at a
// time.
func (k *integerProducts) unpackParamsOf(s *panelScratch, w Matrix, n int) {
	groups := w.In / groupSize
	eights := groups &^ 7
	for i, params := range [][]byte{w.Scales, w.Biases} {
		s.pointTo(params, 2*groups, n, w.Out)
		for strip := range s.width / 8 {
			to := i*s.width + 8*strip
			if eights > 0 {
				k.unpackParams((*byte)(unsafe.Pointer(&s.params[to])), &s.rows[strip], eights)
			}
			for g := eights; g < groups; g++ {
				for j, row := range s.rows[strip] {
					bits := *(*[2]byte)(unsafe.Add(unsafe.Pointer(row), 2*g))
					s.params[2*g*s.width+to+j] = tensor.FromBF16(uint16(bits[0]) | uint16(bits[1])<<8)
				}
			}
		}
	}
}
