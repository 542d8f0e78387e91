package checkpoint

import (
	"bytes"
	"io/fs"
	"maps"
	"slices"
)

// memory holds files that a program brings along.
type memory struct {
	name  string
	files map[string][]byte
}

// Memory returns files that are in memory already. Their bytes are used where
// they are, so they must not change.
func Memory(name string, files map[string][]byte) Source { return memory{name, files} }

func (m memory) String() string { return m.name }

func (m memory) List() ([]string, error) { return slices.Sorted(maps.Keys(m.files)), nil }

func (m memory) Open(name string) (File, error) {
	data, ok := m.files[name]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return memoryFile{bytes.NewReader(data), data}, nil
}

type memoryFile struct {
	*bytes.Reader
	data []byte
}

func (f memoryFile) Bytes() []byte { return f.data }
func (f memoryFile) Close() error  { return nil }
