package cpu

import "unsafe"

// region is zeroed memory outside the Go heap: the collector does not count it,
// so that garbage may not pile up to its size, and freeing it takes effect at
// once. Pages take memory when they are first touched.
type region struct{ bytes []byte }

func newRegion(size int) (region, error) {
	if size == 0 {
		return region{}, nil
	}
	b, err := reserve(size)
	return region{b}, err
}

// floats returns the region as float32 values.
func (r region) floats() []float32 {
	if len(r.bytes) == 0 {
		return nil
	}
	return unsafe.Slice((*float32)(unsafe.Pointer(&r.bytes[0])), len(r.bytes)/4)
}

// free gives the memory back. Nothing may hold a slice of it.
func (r *region) free() error {
	if r.bytes == nil {
		return nil
	}
	b := r.bytes
	r.bytes = nil
	return release(b)
}

// carver cuts slices off memory. Without memory it makes them, and either way
// counts, so that one function lays memory out and says how much it is.
type carver struct {
	memory []float32
	dry    bool // count only
	used   int  // values
}

func (c *carver) floats(n int) []float32 {
	from := c.used
	c.used += n
	switch {
	case c.dry:
		return nil
	case c.memory == nil:
		return make([]float32, n)
	}
	return c.memory[from:c.used:c.used]
}

// aligned is floats at the start of a cache line.
func (c *carver) aligned(n int) []float32 {
	c.used = (c.used + 15) &^ 15
	return c.floats(n)
}
