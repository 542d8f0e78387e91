package checkpoint

import (
	"io"

	"calla/core/tensor"
)

// Weight is one tensor of a checkpoint: where its bytes are and how to read
// them. A Weight lives as long as its Checkpoint is open.
type Weight struct {
	Name  string
	DType tensor.DType
	Shape tensor.Shape

	Shard  string // the file that holds it
	Offset int64  // of its first byte in that file; at any alignment
	Size   int64  // bytes

	file File
}

// Bytes returns the weight's mapped bytes, read-only and at any alignment.
func (w Weight) Bytes() []byte { return w.file.Bytes()[w.Offset : w.Offset+w.Size] }

// ReadAt reads len(p) of the weight's bytes from its byte off on. It reads the
// file itself and leaves the mapping alone.
func (w Weight) ReadAt(p []byte, off int64) (int, error) {
	return io.NewSectionReader(w.file, w.Offset, w.Size).ReadAt(p, off)
}
