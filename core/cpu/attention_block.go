package cpu

import (
	"math"

	"calla/core/backend"
)

// Attention implements backend.Pass.
func (p *pass) Attention(layer int) {
	p.block(layer, func() {
		l, c, s := &p.layers[layer], &p.config, &p.scr.attention
		w, rows := l.attention, len(p.tokens)
		x := p.normed(l.inputNorm)
		p.observe(layer, "norm.input", c.Hidden, x)
		p.products(x, rows, product{w.q, s.q, p.r}, product{w.k, s.k, p.r}, product{w.v, s.v, p.r})
		p.observe(layer, "attention.qg", 2*p.dims.query, s.q[:rows*2*p.dims.query])
		p.observe(layer, "attention.k", p.dims.kv, s.k[:rows*p.dims.kv])
		p.observe(layer, "attention.v", p.dims.kv, s.v[:rows*p.dims.kv])

		p.eachRow(func(t int) { p.normHeads(w, t) })
		p.observe(layer, "attention.qg.normed", 2*p.dims.query, s.q[:rows*2*p.dims.query])
		p.observe(layer, "attention.k.normed", p.dims.kv, s.k[:rows*p.dims.kv])
		p.eachRow(func(t int) { p.turnAndStore(l.index, t) })
		p.observe(layer, "attention.qg.roped", 2*p.dims.query, s.q[:rows*2*p.dims.query])
		p.observe(layer, "attention.k.roped", p.dims.kv, s.k[:rows*p.dims.kv])

		if p.phase == backend.Decode {
			p.attendSpans(l.index)
		} else {
			p.attendTiles(l.index)
		}
		o := s.o[:rows*p.dims.query]
		p.eachRow(func(t int) {
			for h := range c.Heads {
				p.k.outputGate(p.r, o[t*p.dims.query+h*c.HeadDim:][:c.HeadDim], p.query(t, h)[c.HeadDim:][:c.HeadDim])
			}
		})
		p.observe(layer, "attention.gated", p.dims.query, o)
		out := p.scr.out[:rows*c.Hidden]
		p.products(o, rows, product{w.out, out, p.r})
		p.observe(layer, "attention.out", c.Hidden, out)
		p.addResidual(out)
	})
}

// query returns a row's query and gate of one head, [2, head dim], and those of
// the heads behind it.
func (p *pass) query(t, head int) []float32 {
	return p.scr.attention.q[t*2*p.dims.query+head*2*p.config.HeadDim:]
}

// key returns a row's key of one KV head.
func (p *pass) key(t, head int) []float32 {
	return p.scr.attention.k[t*p.dims.kv+head*p.config.HeadDim:][:p.config.HeadDim]
}

func (p *pass) normHeads(w *attentionWeights, t int) {
	c := &p.config
	for h := range c.Heads {
		q := p.query(t, h)[:c.HeadDim]
		p.k.rmsNorm(p.r, q, q, w.qNorm, c.NormEps)
	}
	for h := range c.KVHeads {
		k := p.key(t, h)
		p.k.rmsNorm(p.r, k, k, w.kNorm, c.NormEps)
	}
}

// turnAndStore applies rope to a row and puts its keys and values in the cache.
func (p *pass) turnAndStore(index, t int) {
	c, s := &p.config, &p.scr.attention
	half := c.RotaryDims / 2
	cos, sin := s.cos[t*half:][:half], s.sin[t*half:][:half]
	RopeAngles(cos, sin, p.from+t, p.frequencies)
	for h := range c.Heads {
		Rope(p.r, p.query(t, h), cos, sin)
	}
	for h := range c.KVHeads {
		Rope(p.r, p.key(t, h), cos, sin)
	}
	p.state.kv.store(index, p.from+t, s.k[t*p.dims.kv:][:p.dims.kv], s.v[t*p.dims.kv:][:p.dims.kv])
}

// widen reads keys and values of positions from to to, at most a block of them.
func (p *pass) widen(w *workerScratch, index, head, from, to int) {
	n := (to - from) * p.config.HeadDim
	k, v := p.state.kv.cells(index, head, from, to)
	p.k.unpack(p.r, w.keys[:n], k)
	p.k.unpack(p.r, w.values[:n], v)
	p.k.turnKeys(w, to-from, p.config.HeadDim)
}

// headsOf returns a row's queries of the heads that share a KV head.
func (p *pass) headsOf(t, kvHead int) headRows {
	group := p.config.Heads / p.config.KVHeads
	return headRows{p.query(t, kvHead*group), group, 2 * p.config.HeadDim, p.config.HeadDim}
}

// attendTiles is the attention of a prefill: a task is some rows and the query
// heads of one KV head, and widens each key block once for all of them.
func (p *pass) attendTiles(index int) {
	heads, rows := p.config.KVHeads, len(p.tokens)
	p.device.pool.run(tasks(rows, tileRows)*heads, func(worker, task int) {
		lo := task / heads * tileRows
		p.attendTile(&p.scr.workers[worker], index, task%heads, lo, min(lo+tileRows, rows))
	})
}

func (p *pass) attendTile(w *workerScratch, index, kvHead, lo, hi int) {
	c := &p.config
	group, dim := c.Heads/c.KVHeads, c.HeadDim
	scale := attentionScale(dim)
	parts := func(t int) []float32 { return w.partials[(t-lo)*group*(2+dim):] }
	at := func(t, g int) partial { return parts(t)[g*(2+dim):][:2+dim] }
	for t := lo; t < hi; t++ {
		for g := range group {
			at(t, g).reset()
		}
	}
	last := p.from + hi - 1
	for from := 0; from <= last; from += keyBlock {
		p.widen(w, index, kvHead, from, min(from+keyBlock, last+1))
		for t := max(lo, from-p.from); t < hi; t++ {
			n := min(keyBlock, p.from+t-from+1)
			p.k.foldBlock(w, n, p.headsOf(t, kvHead), parts(t), scale)
		}
	}
	for t := lo; t < hi; t++ {
		for g := range group {
			at(t, g).finish(p.r, p.scr.attention.o[t*p.dims.query+(kvHead*group+g)*dim:][:dim])
		}
	}
}

// attendSpans is the attention of a decode step: a task is a span of keys and
// the query heads of one KV head. The spans of a head are merged in order.
func (p *pass) attendSpans(index int) {
	c := &p.config
	group, width := c.Heads/c.KVHeads, 2+c.HeadDim
	spans := tasks(p.from+1, spanKeys)
	parts := func(span, head int) []float32 { return p.scr.attention.spans[(span*c.Heads+head)*width:] }
	at := func(span, head int) partial { return parts(span, head)[:width] }
	p.device.pool.run(spans*c.KVHeads, func(worker, task int) {
		span, kvHead := task/c.KVHeads, task%c.KVHeads
		for g := range group {
			at(span, kvHead*group+g).reset()
		}
		w, end := &p.scr.workers[worker], min((span+1)*spanKeys, p.from+1)
		for from := span * spanKeys; from < end; from += keyBlock {
			n := min(keyBlock, end-from)
			p.widen(w, index, kvHead, from, from+n)
			p.k.foldBlock(w, n, p.headsOf(0, kvHead), parts(span, kvHead*group), attentionScale(c.HeadDim))
		}
	})
	for h := range c.Heads {
		all := at(0, h)
		for span := 1; span < spans; span++ {
			all.merge(at(span, h))
		}
		all.finish(p.r, p.scr.attention.o[h*c.HeadDim:][:c.HeadDim])
	}
}

func attentionScale(dim int) float32 { return float32(1 / math.Sqrt(float64(dim))) }
