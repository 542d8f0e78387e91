package cpu

import "calla/core/backend"

// MoE implements backend.Pass.
func (p *pass) MoE(layer int) {
	p.block(layer, func() {
		l, c, s := &p.layers[layer], &p.config, &p.scr.moe
		rows := len(p.tokens)
		x := p.normed(l.postNorm)
		p.observe(layer, "norm.post", c.Hidden, x)
		p.products(x, rows, product{l.moe.router, s.logits, F32}, product{l.moe.mix, s.mix, p.r})
		p.observe(layer, "router.mix", 1, s.mix[:rows])
		p.route(layer)

		out := p.scr.out[:rows*c.Hidden]
		if p.phase == backend.Decode {
			p.decodeExperts(&l.moe, x, out)
		} else {
			p.prefillExperts(layer, x, out)
		}
		p.observe(layer, "moe.out", c.Hidden, out)
		p.addResidual(out)
		p.observe(layer, "residual", c.Hidden, p.hidden())
	})
}

// route chooses the experts of every row, and how much of the shared one.
func (p *pass) route(layer int) {
	s, all, k := &p.scr.moe, p.config.Experts, p.config.ExpertsPerToken
	rows := len(p.tokens)
	p.eachRow(func(t int) {
		Route(s.experts[t*k:][:k], s.weights[t*k:][:k], s.logits[t*all:][:all])
	})
	Sigmoid(p.r, s.mix[:rows])
	if p.device.options.Observe == nil {
		return
	}
	chosen := make([]float32, rows*k)
	for i, e := range s.experts[:rows*k] {
		chosen[i] = float32(e)
	}
	p.observe(layer, "router.experts", k, chosen)
	p.observe(layer, "router.weights", k, s.weights[:rows*k])
}
