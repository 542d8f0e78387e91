package cpu

import (
	"encoding/binary"
	"sync/atomic"
)

// readSize is what one task of Read reads.
const readSize = 1 << 20

// Read reads b with all of the device's goroutines, as fast as they can, and
// returns a number that depends on every byte. How long it takes for memory far
// larger than the caches says what bandwidth decoding can have.
func (d *Device) Read(b []byte) uint32 {
	var all atomic.Uint32
	d.pool.run(tasks(len(b), readSize), func(_, task int) {
		all.Add(d.kernels.read(b[task*readSize : min((task+1)*readSize, len(b))]))
	})
	return all.Load()
}

func readPlain(b []byte) uint32 {
	var a, c uint64
	for ; len(b) >= 16; b = b[16:] {
		a ^= binary.LittleEndian.Uint64(b)
		c ^= binary.LittleEndian.Uint64(b[8:])
	}
	a ^= c
	for _, v := range b {
		a ^= uint64(v)
	}
	return uint32(a) ^ uint32(a>>32)
}
