package cpu

import (
	"unsafe"

	"calla/core/tensor"
)

const (
	maxTile = 6 // rows of the largest tile
	// panelRows is how many rows of a matrix are multiplied at once with all
	// activations; scripts/kernels says how they lie.
	panelRows   = 32
	panelCodes  = 32 * panelRows * 4 // bytes of a group of columns
	panelParams = 2 * panelRows * 4
	// panelGroups is how many groups are unpacked at a time: with some rows of
	// activations they fit the nearest cache. Even, as blocks of two are.
	panelGroups = 4
)

// panelScratch is one goroutine's.
type panelScratch struct {
	codes  []float32 // panelGroups groups
	params []float32 // of all groups
	sums   []float32 // [rows, panelRows]
	// rows are the panel's rows of codes, then of scales or biases; activations
	// those of the call.
	rows        [panelRows / 8][8]*byte
	activations []*byte
}

func (s *panelScratch) layOut(v *carver, in, rows int) {
	s.codes = v.aligned(panelGroups * panelCodes / 4)
	s.params = v.aligned(in / groupSize * panelParams / 4)
	s.sums = v.aligned(rows * panelRows)
	s.activations = make([]*byte, rows+maxTile)
}

// multiply makes columns n to n+31, or to the last, of y = x Wᵀ: a row of y for
// each of count rows of a, or for those that rows names. Meanwhile it fetches
// the matrix's next rows, where they will be wanted.
func (k *integerProducts) multiply(s *panelScratch, y []float32, w Matrix, n int, a activations, rows []int32, count int, fetch bool) {
	for i := range count {
		row := i
		if rows != nil {
			row = int(rows[i])
		}
		s.activations[i] = (*byte)(a.row(row))
	}
	sums := s.sums[:count*panelRows]
	clear(sums)
	k.unpackParamsOf(s, w, n)
	s.pointTo(w.Codes, w.codeStride(), n, w.Out)
	for g := 0; g < a.groups; g += panelGroups {
		groups := min(panelGroups, a.groups-g)
		if fetch {
			k.fetchNext(w, n, g, groups)
		}
		k.unpackCodes(s, w, g, groups)
		for from := 0; from < count; {
			size := k.tileSize(count - from)
			k.tiles[size-1](&sums[from*panelRows], (*[maxTile]*byte)(s.activations[from:]),
				(*byte)(unsafe.Pointer(&s.codes[0])), (*byte)(unsafe.Pointer(&s.params[g*panelParams/4])),
				groups, g/2*blockBytes, a.scale+4*g, a.sum+4*g)
			from += size
		}
	}
	width := min(panelRows, w.Out-n)
	for i := range count {
		copy(y[i*w.Out+n:][:width], sums[i*panelRows:])
	}
}

// tileSize cuts rows into tiles of about the same size.
func (k *integerProducts) tileSize(rows int) int {
	most := len(k.tiles)
	n := (rows + most - 1) / most
	return (rows + n - 1) / n
}

// fetchNext asks for a share of the next panel's rows, as large as the groups'
// of this one.
func (k *integerProducts) fetchNext(w Matrix, n, g, groups int) {
	size := groups * groupSize * w.Bits / 8 * panelRows
	from := (n+panelRows)*w.codeStride() + g*groupSize*w.Bits/8*panelRows
	if from+size <= len(w.Codes) {
		k.fetch(&w.Codes[from], size)
	}
}

// pointTo sets s.rows to rows n to n+31 of an array. Behind the end the last row
// is repeated.
func (s *panelScratch) pointTo(array []byte, stride, n, end int) {
	for i := range panelRows {
		s.rows[i/8][i%8] = &array[min(n+i, end-1)*stride]
	}
}

func (k *integerProducts) unpackCodes(s *panelScratch, w Matrix, g, groups int) {
	kernel := k.unpack4
	if w.Bits == 8 {
		kernel = k.unpack8
	}
	for strip := range s.rows {
		kernel((*byte)(unsafe.Pointer(&s.codes[8*strip])), &s.rows[strip], g*groupSize*w.Bits/8, groups)
	}
}

// unpackParamsOf widens scales and biases; the kernel takes eight groups at a
// time.
func (k *integerProducts) unpackParamsOf(s *panelScratch, w Matrix, n int) {
	groups := w.In / groupSize
	eights := groups &^ 7
	for i, params := range [][]byte{w.Scales, w.Biases} {
		s.pointTo(params, 2*groups, n, w.Out)
		for strip := range s.rows {
			to := i*panelRows + 8*strip
			if eights > 0 {
				k.unpackParams((*byte)(unsafe.Pointer(&s.params[to])), &s.rows[strip], eights)
			}
			for g := eights; g < groups; g++ {
				for j, row := range s.rows[strip] {
					bits := *(*[2]byte)(unsafe.Add(unsafe.Pointer(row), 2*g))
					s.params[g*panelParams/4+to+j] = tensor.FromBF16(uint16(bits[0]) | uint16(bits[1])<<8)
				}
			}
		}
	}
}
