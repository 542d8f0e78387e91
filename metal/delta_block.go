package metal

import "calla/core/backend"

// DeltaNet implements backend.Pass. A decoded row takes three dispatches.
func (p *pass) DeltaNet(layer int) {
	l, s, d := &p.layers[layer], &p.scratch, p.shapes.delta
	conv := int64(l.index * p.shapes.convBytes())
	convIn, convOut := p.state.conv.at(conv), s.conv.at(conv)
	recurrent := p.state.recurrent.at(int64(l.index * p.shapes.recurrentBytes()))
	parts := []view{
		p.part("delta.qkv", d.Width, 0, d.Channels()), p.part("delta.z", d.Width, d.Z, d.values()),
		p.part("delta.b", d.Width, d.B, d.ValueHeads), p.part("delta.a", d.Width, d.A, d.ValueHeads),
	}
	if p.phase == backend.Decode {
		p.ProjectNormed(s.h, l.inputNorm, l.projection, s.projected, d.Eps)
		p.DeltaStep(d, l.delta, s.projected, convIn, convOut, recurrent, s.mixed)
		p.ProjectAdd(s.mixed, l.out, s.h)
		p.observe(layer, append(parts, view{name: "delta.gated", at: s.mixed, width: d.values(), kind: bf16})...)
		return
	}
	p.NormaliseRows(s.h, l.inputNorm, s.x, p.rows, p.hidden(), d.Eps)
	p.Matmul(s.x, l.projection, s.projected, p.rows)
	p.DeltaPrepare(d, l.delta, s.projected, convIn, convOut, s.qkv, s.gates, p.rows)
	p.DeltaChunks(d, p.chunkList, p.chunks, s.qkv, s.gates, s.pairs, recurrent, s.mixed)
	p.observe(layer, append(parts, view{name: "norm.input", at: s.x, width: p.hidden(), kind: bf16},
		view{name: "delta.qkv.normed", at: s.qkv, width: d.Channels(), kind: f32},
		view{name: "delta.o", at: s.mixed, width: d.values(), kind: bf16})...)
	p.GatedNormRows(d, l.delta, s.projected, s.mixed, p.rows)
	p.MatmulAdd(s.mixed, l.out, s.h, p.rows)
	p.observe(layer, view{name: "delta.gated", at: s.mixed, width: d.values(), kind: bf16})
}
