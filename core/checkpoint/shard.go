package checkpoint

import (
	"encoding/binary"
	"fmt"
)

// shard is one open safetensors file: eight bytes with the length of a JSON
// header, the header, and the tensors' bytes.
type shard struct {
	name    string
	file    File
	data    int64 // where the tensors' bytes begin; any number, even or odd
	entries []entry
}

// openShard opens a shard and checks its header against its length. It reads
// nothing behind the header.
func openShard(src Source, name string) (*shard, error) {
	f, err := src.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s := &shard{name: name, file: f}
	if err := s.readHeader(); err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return s, nil
}

func (s *shard) readHeader() error {
	length, err := s.headerLength()
	if err != nil {
		return err
	}
	text, err := readString(s.file, 8, length)
	if err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if s.entries, err = parseHeader(text); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	s.data = 8 + length
	end, err := dataEnd(s.entries)
	if err != nil {
		return err
	}
	switch have := s.file.Size() - s.data; {
	case have < end:
		return fmt.Errorf("%d bytes, but the header asks for %d: an incomplete download", s.file.Size(), s.data+end)
	case have > end:
		return fmt.Errorf("%d bytes, want %d: %d that no tensor has", s.file.Size(), s.data+end, have-end)
	}
	return nil
}

// headerLength reads the first eight bytes. What is no safetensors file shows
// there as a length that cannot be.
func (s *shard) headerLength() (int64, error) {
	size := s.file.Size()
	var n uint64
	if size >= 8 {
		var head [8]byte
		if _, err := s.file.ReadAt(head[:], 0); err != nil {
			return 0, fmt.Errorf("read: %w", err)
		}
		n = binary.LittleEndian.Uint64(head[:])
		if n <= maxHeader && int64(n) <= size-8 {
			return int64(n), nil
		}
	}
	head, err := readString(s.file, 0, min(size, 512))
	if err != nil {
		return 0, err
	}
	switch what := identify(head); {
	case what != "":
		return 0, fmt.Errorf("%s, want a safetensors file; %s", what, wanted)
	case size < 8:
		return 0, fmt.Errorf("%d bytes, too short for a safetensors file: an incomplete download", size)
	case n > maxHeader:
		return 0, fmt.Errorf("a header of %d bytes, want at most %d: no safetensors file", n, maxHeader)
	}
	return 0, fmt.Errorf("a header of %d bytes in a file of %d: an incomplete download", n, size)
}
