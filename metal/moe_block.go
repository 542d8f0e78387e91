package metal

import "calla/core/backend"

// MoE implements backend.Pass. A decoded row takes three dispatches.
func (p *pass) MoE(layer int) {
	l, s, x := &p.layers[layer], &p.scratch, p.shapes.experts
	r := s.routing
	if p.phase == backend.Decode {
		p.RouteNormed(s.h, l.postNorm, l.experts.Router, r.Logits, x.Eps)
		p.ExpertsGateUp(x, l.experts, s.h, l.postNorm, r.Logits, s.inner)
		p.ExpertsDown(x, l.experts, r.Logits, s.inner, s.h)
		p.observe(layer, view{"residual", s.h, p.hidden(), bf16})
		return
	}
	p.NormaliseRows(s.h, l.postNorm, s.x, p.rows, p.hidden(), x.Eps)
	p.MatmulSwiGLU(s.x, l.experts.SharedGateUp, s.sharedInner, p.rows)
	p.Beside()
	p.RouteRowsLogits(s.x, l.experts.Router, r.Logits, p.rows)
	p.Matmul(s.sharedInner, l.experts.SharedDown, s.sharedOut, p.rows)
	p.Beside()
	p.SortRows(x, r, p.rows)
	p.ExpertRows(x, l.experts, r, s.x, s.rowsInner, s.rowsOut, p.rows)
	p.CombineRows(x, r.Weights, s.rowsOut, s.sharedOut, s.h, p.rows)
	p.observe(layer, view{"norm.post", s.x, p.hidden(), bf16}, view{"residual", s.h, p.hidden(), bf16},
		view{"router.experts", r.Experts, x.Chosen, i32}, view{"moe.shared", s.sharedOut, p.hidden(), bf16})
}
