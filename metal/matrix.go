package metal

import "calla/core/backend"

const (
	groupColumns = 64 // of a quantisation group
	tileRows     = 4  // rows of a tile
	quarters     = 4  // of a group: the columns that a lane takes at once
)

// Matrix is a quantised matrix as the kernels read it (shaders/quantised.h), or
// a stack of such, one behind the other.
type Matrix struct {
	At      Binding
	Rows    int // of one; padded with zeros to whole tiles
	Columns int
	Bits    int
}

func (m Matrix) tiles() int { return ceil(m.Rows, tileRows) }

// blockBytes returns the bytes of a block: four rows of a quantisation group.
func blockBytes(bits int) int { return 16 + 32*bits }

func tileBytes(columns, bits int) int { return columns / groupColumns * blockBytes(bits) }

// rowBytes are the bytes of one row of a matrix as a checkpoint has it.
type rowBytes struct{ codes, scales, biases []byte }

// packTile lays four rows out as a tile. A row without codes becomes zeros.
func packTile(dst []byte, rows [tileRows]rowBytes, columns, bits int) {
	quarter := 2 * bits // bytes of a row's codes in a quarter
	for g := range columns / groupColumns {
		block := dst[g*blockBytes(bits):][:blockBytes(bits)]
		clear(block)
		for r, row := range rows {
			if row.codes == nil {
				continue
			}
			copy(block[4*r:], row.scales[2*g:2*g+2])
			copy(block[4*r+2:], row.biases[2*g:2*g+2])
			codes := row.codes[g*quarters*quarter:][:quarters*quarter]
			for q := range quarters {
				copy(block[16+q*tileRows*quarter+r*quarter:], codes[q*quarter:(q+1)*quarter])
			}
		}
	}
}

// stackRows returns the rows of all matrices of a stack.
func stackRows(q backend.Quantised) int { return q.Experts * q.Out }
