package download

import (
	"context"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
)

// PieceSize is the length in bytes of the pieces that a file is proved by; the
// last piece of a file is what is left.
const PieceSize = 16 << 20

// Span is a range of bytes of a file.
type Span struct {
	Begin int64 `json:"begin"`
	End   int64 `json:"end"` // the first byte behind it
}

func (s Span) String() string { return fmt.Sprintf("bytes %d to %d", s.Begin, s.End-1) }

// pieces is a file cut into pieces.
type pieces struct{ size, piece int64 }

func (p pieces) count() int { return int((p.size + p.piece - 1) / p.piece) }

// span returns where piece i lies.
func (p pieces) span(i int) Span {
	begin := int64(i) * p.piece
	return Span{begin, min(begin+p.piece, p.size)}
}

func (p pieces) length(i int) int64 {
	s := p.span(i)
	return s.End - s.Begin
}

// at returns the piece that has the byte at off, off < size.
func (p pieces) at(off int64) int { return int(off / p.piece) }

// castagnoli is computed by the processor, so that it costs next to nothing
// beside the digest.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// readSize is how much of a file is read or written at once, in bytes.
const readSize = 1 << 20

// buffers are of readSize bytes.
var buffers = sync.Pool{New: func() any { b := make([]byte, readSize); return &b }}

// readSpan reads a stretch of a file, copies it to w, and returns its CRC-32C.
func readSpan(ctx context.Context, r io.ReaderAt, s Span, w io.Writer, progress func(int64)) (uint32, error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	var sum uint32
	for off := s.Begin; off < s.End; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		b := (*buf)[:min(readSize, s.End-off)]
		if _, err := r.ReadAt(b, off); err != nil {
			return 0, err
		}
		sum = crc32.Update(sum, castagnoli, b)
		if _, err := w.Write(b); err != nil {
			return 0, err
		}
		off += int64(len(b))
		progress(int64(len(b)))
	}
	return sum, nil
}
