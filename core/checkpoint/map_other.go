//go:build !(darwin || dragonfly || freebsd || linux || netbsd || openbsd)

package checkpoint

import (
	"io"
	"os"
)

// mapFile reads the whole file into memory, on systems where we map none.
func mapFile(f *os.File, size int64) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(io.NewSectionReader(f, 0, size), data)
	return data, err
}

func unmapFile([]byte) error { return nil }
