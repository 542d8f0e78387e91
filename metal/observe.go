package metal

import (
	"encoding/binary"

	"calla/core/tensor"
)

// kind is how values lie in a buffer.
type kind uint8

const (
	bf16 kind = iota
	f32
	i32
)

// size returns the bytes of a value.
func (k kind) size() int {
	if k == bf16 {
		return 2
	}
	return 4
}

// view is values of a call's rows in a buffer, under a name.
type view struct {
	name   string
	at     Binding
	width  int
	kind   kind
	stride int // values from row to row, where more than width
}

// part is columns of projected rows, which are width wide.
func (p *pass) part(name string, width, from, columns int) view {
	at := p.scratch.projected
	at.Offset += int64(from * bf16.size())
	return view{name, at, columns, bf16, width}
}

// observe runs what was encoded so far and shows values to the observer, where
// there is one.
func (p *pass) observe(layer int, views ...view) {
	show := p.device.options.Observe
	if show == nil || p.err != nil {
		return
	}
	c, err := p.flush()
	if err == nil {
		err = c.Wait()
	}
	if err != nil {
		p.err = err
		return
	}
	for _, v := range views {
		stride := max(v.stride, v.width)
		bytes, err := fetch(p.device.driver, v.at, int64(((p.rows-1)*stride+v.width)*v.kind.size()))
		if err != nil {
			p.err = err
			return
		}
		var values []float32
		for all := v.values(bytes); len(all) > 0; all = all[min(stride, len(all)):] {
			values = append(values, all[:v.width]...)
		}
		show(layer, v.name, v.width, values)
	}
}

// values are a view's bytes as numbers.
func (v view) values(bytes []byte) []float32 {
	out := make([]float32, len(bytes)/v.kind.size())
	for i := range out {
		switch v.kind {
		case bf16:
			out[i] = tensor.FromBF16(binary.LittleEndian.Uint16(bytes[2*i:]))
		case f32:
			out[i] = float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
		case i32:
			out[i] = float32(int32(binary.LittleEndian.Uint32(bytes[4*i:])))
		}
	}
	return out
}
