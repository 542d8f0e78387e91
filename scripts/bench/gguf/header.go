package main

import (
	"bytes"
	"encoding/binary"
)

// alignment is that of GGUF's data section and of each tensor in it.
const alignment = 32

// Types of GGUF's metadata values.
const (
	kindUint32  = 4
	kindInt32   = 5
	kindFloat32 = 6
	kindString  = 8
	kindArray   = 9
)

// header is the part of a GGUF file before its data: counts, metadata and the
// list of tensors, little-endian throughout.
type header struct {
	meta, list       bytes.Buffer
	metas, listCount uint64
}

func write(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			write(b, uint64(len(s)))
			b.WriteString(s)
			continue
		}
		if err := binary.Write(b, binary.LittleEndian, v); err != nil {
			panic(err) // a value that has no fixed size
		}
	}
}

// set adds a metadata value: a string, uint32, float32 or []int32.
func (h *header) set(key string, value any) {
	h.metas++
	write(&h.meta, key)
	switch v := value.(type) {
	case string:
		write(&h.meta, uint32(kindString), v)
	case uint32:
		write(&h.meta, uint32(kindUint32), v)
	case float32:
		write(&h.meta, uint32(kindFloat32), v)
	case []int32:
		write(&h.meta, uint32(kindArray), uint32(kindInt32), uint64(len(v)), v)
	default:
		panic("gguf: metadata of another type")
	}
}

// add lists a tensor whose data begin at offset of the data section. GGUF names
// the innermost dimension first.
func (h *header) add(t array, offset int64) {
	h.listCount++
	write(&h.list, t.name, uint32(len(t.shape)))
	for i := len(t.shape) - 1; i >= 0; i-- {
		write(&h.list, uint64(t.shape[i]))
	}
	write(&h.list, t.format.id, uint64(offset))
}

// bytes returns the header with the padding after it.
func (h *header) bytes() []byte {
	var b bytes.Buffer
	b.WriteString("GGUF")
	write(&b, uint32(3), h.listCount, h.metas)
	b.Write(h.meta.Bytes())
	b.Write(h.list.Bytes())
	b.Write(make([]byte, aligned(int64(b.Len()))-int64(b.Len())))
	return b.Bytes()
}

func aligned(n int64) int64 { return (n + alignment - 1) / alignment * alignment }
