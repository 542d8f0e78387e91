package metal

import "calla/core/backend"

// MoE implements backend.Pass. A decoded row takes three dispatches.
func (p *pass) MoE(layer int) {
	l, s, x := &p.layers[layer], &p.scratch, p.shapes.experts
	r := s.routing
	residual := view{name: "residual", at: s.h, width: p.hidden(), kind: bf16}
	chosen := view{name: "router.experts", at: r.Experts, width: x.Chosen, kind: i32}
	if p.phase == backend.Decode {
		p.RouteNormed(s.h, l.postNorm, l.experts.Router, r.Logits, x.Eps)
		p.ExpertsGateUp(x, l.experts, s.h, l.postNorm, r.Logits, s.inner)
		p.ExpertsDown(x, l.experts, r.Logits, s.inner, s.h)
		if p.device.options.Observe != nil {
			p.RouteRows(x, r, 1) // both kernels have chosen for themselves
		}
		p.observe(layer, residual, chosen)
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
	p.observe(layer, residual, chosen, view{name: "norm.post", at: s.x, width: p.hidden(), kind: bf16},
		view{name: "moe.shared", at: s.sharedOut, width: p.hidden(), kind: bf16})
}
