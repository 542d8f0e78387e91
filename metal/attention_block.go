package metal

import "calla/core/backend"

// Attention implements backend.Pass. A decoded row takes five dispatches.
func (p *pass) Attention(layer int) {
	l, s, a := &p.layers[layer], &p.scratch, p.shapes.attention
	cache := p.state.kv[l.index].at(0)
	views := []view{
		p.part("attention.qg", a.Width, 0, a.K), p.part("attention.k", a.Width, a.K, a.V-a.K),
		p.part("attention.v", a.Width, a.V, a.Width-a.V),
		{name: "attention.gated", at: s.mixed, width: a.Heads * a.Dim, kind: bf16},
	}
	if p.phase == backend.Decode {
		p.ProjectNormed(s.h, l.inputNorm, l.projection, s.projected, a.Eps)
		p.AttentionPrepare(a, s.projected, l.qNorm, l.kNorm, p.angles, s.queries, cache, 1, p.from)
		p.AttendStep(a, s.projected, s.queries, cache, s.partial, s.stats, s.mixed, p.from)
		p.ProjectAdd(s.mixed, l.out, s.h)
		p.observe(layer, views...)
		return
	}
	p.NormaliseRows(s.h, l.inputNorm, s.x, p.rows, p.hidden(), a.Eps)
	p.Matmul(s.x, l.projection, s.projected, p.rows)
	p.AttentionPrepare(a, s.projected, l.qNorm, l.kNorm, p.angles, s.queries, cache, p.rows, p.from)
	p.AttendRows(a, s.projected, s.queries, cache, s.mixed, p.rows, p.from)
	p.MatmulAdd(s.mixed, l.out, s.h, p.rows)
	p.observe(layer, append(views, view{name: "norm.input", at: s.x, width: p.hidden(), kind: bf16})...)
}
