package metal

import (
	"fmt"
	"math"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/tensor"
)

// alignment of the parts of a buffer, in bytes.
const alignment = 256

// plan is where each weight goes and how it gets there.
type plan struct {
	w        *weights
	sections []section
	total    int64 // bytes to read
}

// section becomes one buffer.
type section struct {
	name  string
	parts []part
	bytes int64
}

// part is one stretch of a buffer.
type part struct {
	offset, bytes int64
	place         func(Binding) // is told where it lies
	jobs          []job
}

// job fills bytes of a part from the checkpoint.
type job struct {
	from, to int64 // within the part
	reads    int64 // bytes of the checkpoint
	run      func(dst []byte, s *staging) error
}

func newPlan(w *weights, b *backend.Binding) *plan {
	p := &plan{w: w, sections: make([]section, 0, len(b.Layers)+2)}
	p.section("embed")
	p.matrix(&w.embed, source{b.Embed})
	p.section("head")
	p.vector(&w.norm, b.Norm)
	head := b.Head
	head.Out = b.Logits() // padding gets no logits
	w.shapes.vocab = head.Out
	p.matrix(&w.head, source{head})
	kinds := map[bool]int{}
	w.layers = make([]layer, len(b.Layers))
	for i, l := range b.Layers {
		attends := l.Attention != nil
		w.layers[i].index = kinds[attends]
		kinds[attends]++
		p.section(fmt.Sprintf("layer%d", i))
		p.layer(&w.layers[i], l)
	}
	return p
}

func (p *plan) section(name string) { p.sections = append(p.sections, section{name: name}) }

func (p *plan) layer(dst *layer, l backend.Layer) {
	p.vector(&dst.inputNorm, l.InputNorm)
	p.vector(&dst.postNorm, l.PostNorm)
	if d := l.Delta; d != nil {
		p.vector(&dst.delta.Taps, d.Conv)
		p.floats(&dst.delta.Rate, d.ALog, func(x float32) float32 { return float32(math.Exp(float64(x))) })
		p.floats(&dst.delta.DT, d.DT, nil)
		p.floats(&dst.delta.Norm, d.Norm, nil)
		p.matrix(&dst.projection, source{d.QKV}, source{d.Z}, source{d.B}, source{d.A})
		p.matrix(&dst.out, source{d.Out})
	}
	if a := l.Attention; a != nil {
		p.vector(&dst.qNorm, a.QNorm)
		p.vector(&dst.kNorm, a.KNorm)
		p.matrix(&dst.projection, source{a.Q}, source{a.K}, source{a.V})
		p.matrix(&dst.out, source{a.Out})
	}
	m := l.MoE
	p.matrix(&dst.experts.Router, source{m.Router}, source{m.SharedMix})
	p.matrix(&dst.experts.SharedGateUp, source{m.SharedGate, m.SharedUp})
	p.matrix(&dst.experts.SharedDown, source{m.SharedDown})
	p.matrix(&dst.experts.GateUp, source{m.Gate, m.Up})
	p.matrix(&dst.experts.Down, source{m.Down})
}

// add appends a part to the last section.
func (p *plan) add(bytes int64, place func(Binding), jobs ...job) {
	s := &p.sections[len(p.sections)-1]
	s.parts = append(s.parts, part{s.bytes, bytes, place, jobs})
	s.bytes = (s.bytes + bytes + alignment - 1) / alignment * alignment
	for _, j := range jobs {
		p.total += j.reads
	}
}

// vector places a bfloat16 vector as it is.
func (p *plan) vector(at *Binding, v checkpoint.Weight) {
	if v.DType != tensor.BF16 {
		panic(fmt.Sprintf("metal: %s is %v, and was checked to be BF16", v.Name, v.DType))
	}
	p.add(v.Size, func(b Binding) { *at = b }, job{0, v.Size, v.Size, func(dst []byte, _ *staging) error {
		return read(v, dst, 0)
	}})
}

// floats places a vector as float32, of which f has been taken where not nil.
func (p *plan) floats(at *Binding, v checkpoint.Weight, f func(float32) float32) {
	size := v.Size / int64(v.DType.Size()) * 4
	p.add(size, func(b Binding) { *at = b }, job{0, size, v.Size, func(dst []byte, s *staging) error {
		raw := s.bytes(0, int(v.Size))
		if err := read(v, raw, 0); err != nil {
			return err
		}
		for i, x := range tensor.Float32s(v.DType, raw) {
			if f != nil {
				x = f(x)
			}
			putFloat(dst[4*i:], x)
		}
		return nil
	}})
}

// matrix places sources one below the other as one matrix, each from a whole
// tile on.
func (p *plan) matrix(m *Matrix, sources ...source) {
	first := sources[0][0]
	m.Columns, m.Bits = first.In, first.Bits
	tile := int64(tileBytes(m.Columns, m.Bits))
	var jobs []job
	tiles := 0
	for _, s := range sources {
		jobs = append(jobs, s.jobs(int64(tiles)*tile)...)
		m.Rows = tiles*tileRows + s.rows()/first.Experts
		tiles += ceil(s.rows(), tileRows)
	}
	p.add(int64(tiles)*tile, func(b Binding) { m.At = b }, jobs...)
}

// allocate makes the buffers and tells every part where it lies.
func (p *plan) allocate() error {
	d := p.w.device.driver
	for _, s := range p.sections {
		if s.bytes > d.MaxBuffer() {
			return fmt.Errorf("metal: %s needs a buffer of %d bytes, the device has them up to %d", s.name, s.bytes, d.MaxBuffer())
		}
		b, err := newLoaded(d, s.name, s.bytes)
		if err != nil {
			return err
		}
		p.w.buffers = append(p.w.buffers, b)
		p.w.bytes += s.bytes
		for _, x := range s.parts {
			x.place(b.at(x.offset))
		}
	}
	return nil
}
