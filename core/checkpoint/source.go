package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
)

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

// The most bytes of a file that is read whole. The published tokenizer.json,
// the largest of them, has 20 MB.
const (
	maxFile = 256 << 20
	maxJSON = 16 << 20
)

// readFile returns the content of a file that has at most limit bytes.
func readFile(src Source, name string, limit int64) (string, error) {
	f, err := src.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if f.Size() > limit {
		return "", fmt.Errorf("%d bytes, want at most %d", f.Size(), limit)
	}
	return readString(f, 0, f.Size())
}

// readString reads n bytes of r from byte off on.
func readString(r io.ReaderAt, off, n int64) (string, error) {
	var b strings.Builder
	b.Grow(int(n))
	buf := make([]byte, max(1, min(n, 32<<10)))
	got, err := io.CopyBuffer(&b, io.NewSectionReader(r, off, n), buf)
	if err != nil {
		return "", fmt.Errorf("read: %w", err)
	}
	if got < n {
		return "", fmt.Errorf("ends after byte %d, while it is read", off+got)
	}
	return b.String(), nil
}

// readJSON reads and checks a JSON file. A file that is not there is
// fs.ErrNotExist; every error names the file.
func readJSON(src Source, name string) (value, error) {
	text, err := readFile(src, name, maxJSON)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	v, err := parseJSON(text)
	if err == nil {
		return v, nil
	}
	if what := identify(text); what != "" {
		return "", fmt.Errorf("%s: %s, want JSON", name, what)
	}
	if text == "" {
		return "", fmt.Errorf("%s: empty, want JSON: an incomplete download", name)
	}
	return "", fmt.Errorf("%s: %w", name, err)
}

// readOptional is readJSON for a file that need not be there.
func readOptional(src Source, name string) (value, bool, error) {
	v, err := readJSON(src, name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, nil
	}
	return v, err == nil, err
}
