package checkpoint

import "io"

// Source is where the files of a checkpoint are: a folder, or memory.
type Source interface {
	// String names the source in messages to people.
	String() string
	// List returns the names of its files, sorted.
	List() ([]string, error)
	// Open opens one of them. The error of a file that is not there is
	// fs.ErrNotExist.
	Open(name string) (File, error)
}

// File is one file of a Source.
type File interface {
	io.ReaderAt
	io.Closer
	// Size returns the file's length in bytes.
	Size() int64
	// Bytes returns the whole file, mapped read-only where it lies on disk.
	Bytes() []byte
}
