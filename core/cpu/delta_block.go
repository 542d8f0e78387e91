package cpu

import (
	"math"

	"calla/core/backend"
)

// convChannels is how many channels one task of the convolution takes.
const convChannels = 512

// DeltaNet implements backend.Pass.
func (p *pass) DeltaNet(layer int) {
	p.block(layer, func() {
		l, c, s := &p.layers[layer], &p.config, &p.scr.delta
		w, rows := l.delta, len(p.tokens)
		state := (c.ConvTaps - 1) * p.dims.conv
		x := p.normed(l.inputNorm)
		p.observe(layer, "norm.input", c.Hidden, x)
		qkv := s.qkv[state:][:rows*p.dims.conv]
		p.products(x, rows,
			product{w.qkv, qkv, p.r}, product{w.z, s.z, p.r},
			product{w.b, s.b, p.r}, product{w.a, s.a, p.r})
		p.observe(layer, "delta.qkv", p.dims.conv, qkv)
		p.observe(layer, "delta.z", p.dims.deltaValue, s.z[:rows*p.dims.deltaValue])

		p.convolve(l)
		p.normalise(layer)
		b, a := s.b[:rows*c.DeltaValueHeads], s.a[:rows*c.DeltaValueHeads]
		p.observe(layer, "delta.b", c.DeltaValueHeads, b)
		p.observe(layer, "delta.a", c.DeltaValueHeads, a)
		Gates(p.r, b, a, w.rate, w.dt)
		p.observe(layer, "delta.beta", c.DeltaValueHeads, b)
		p.observe(layer, "delta.decay", c.DeltaValueHeads, a)

		// The convolution is done with qkv: its place takes o.
		o := s.qkv[:rows*p.dims.deltaValue]
		p.recur(l.index, o)
		p.observe(layer, "delta.o", c.DeltaValueDim, o)
		p.eachRow(func(t int) {
			at, end := t*p.dims.deltaValue, (t+1)*p.dims.deltaValue
			p.k.gatedNorm(p.r, o[at:end], o[at:end], s.z[at:end], w.norm, c.NormEps)
		})
		p.observe(layer, "delta.gated", c.DeltaValueDim, o)
		out := p.scr.out[:rows*c.Hidden]
		p.products(o, rows, product{w.out, out, p.r})
		p.observe(layer, "delta.out", c.Hidden, out)
		p.addResidual(out)
	})
}

// convolve runs the convolution behind the conv state and moves that on.
func (p *pass) convolve(l *layer) {
	s, channels, rows := &p.scr.delta, p.dims.conv, len(p.tokens)
	state := p.state.convOf(l.index)
	kept := (p.config.ConvTaps - 1) * channels
	p.k.unpack(p.r, s.qkv[:kept], state)
	p.device.pool.run(tasks(channels, convChannels), func(_, task int) {
		lo, hi := task*convChannels, min((task+1)*convChannels, channels)
		p.k.conv(p.r, s.conv, s.qkv, l.delta.conv, rows, channels, lo, hi)
	})
	p.k.pack(p.r, state, s.qkv[rows*channels:][:kept])
}

// normalise brings queries and keys to unit length; queries also get the
// attention's scale.
func (p *pass) normalise(layer int) {
	c, channels, key := &p.config, p.dims.conv, p.dims.deltaKey
	scale := float32(1 / math.Sqrt(float64(c.DeltaKeyDim)))
	p.eachRow(func(t int) {
		row := p.scr.delta.conv[t*channels:][:channels]
		p.k.unitNorm(p.r, row[:key], c.DeltaKeyDim, scale)
		p.k.unitNorm(p.r, row[key:2*key], c.DeltaKeyDim, 1)
	})
	p.observe(layer, "delta.qkv.normed", channels, p.scr.delta.conv[:len(p.tokens)*channels])
}

// recur runs the delta rule of every value head: o [rows, value heads, value
// dim].
func (p *pass) recur(index int, o []float32) {
	c := &p.config
	recurrent := p.state.recurrent[index*p.dims.recurrent:][:p.dims.recurrent]
	size := c.DeltaValueDim * c.DeltaKeyDim
	p.device.pool.run(c.DeltaValueHeads, func(worker, head int) {
		s := recurrent[head*size:][:size]
		if p.phase == backend.Decode {
			p.stepHead(head, o, s)
			return
		}
		for _, chunk := range p.chunks {
			p.chunkHead(p.scr.workers[worker].chunk, chunk, head, o, s)
		}
	})
}

// headOf returns q, k and v of one row and value head, after the convolution.
func (p *pass) headOf(t, head int) (q, k, v []float32) {
	c, key := &p.config, p.dims.deltaKey
	row := p.scr.delta.conv[t*p.dims.conv:][:p.dims.conv]
	at := head / (c.DeltaValueHeads / c.DeltaKeyHeads) * c.DeltaKeyDim
	return row[at:][:c.DeltaKeyDim], row[key+at:][:c.DeltaKeyDim],
		row[2*key+head*c.DeltaValueDim:][:c.DeltaValueDim]
}

func (p *pass) stepHead(head int, o, s []float32) {
	q, k, v := p.headOf(0, head)
	dim := p.config.DeltaValueDim
	p.k.deltaStep(p.r, o[head*dim:][:dim], s, q, k, v, exp(p.scr.delta.a[head]), p.scr.delta.b[head])
}

// chunkHead gathers one head of a sub-chunk, runs it and scatters its output.
func (p *pass) chunkHead(c *chunkScratch, rows subChunk, head int, o, s []float32) {
	heads, n := p.config.DeltaValueHeads, rows.hi-rows.lo
	keyDim, valueDim := p.config.DeltaKeyDim, p.config.DeltaValueDim
	for i := range n {
		t := rows.lo + i
		q, k, v := p.headOf(t, head)
		copy(c.q[i*keyDim:], q)
		copy(c.k[i*keyDim:], k)
		copy(c.v[i*valueDim:], v)
		c.decay[i], c.beta[i] = p.scr.delta.a[t*heads+head], p.scr.delta.b[t*heads+head]
	}
	p.k.deltaChunk(p.r, c, s, n, keyDim, valueDim)
	for i := range n {
		copy(o[((rows.lo+i)*heads+head)*valueDim:], c.o[i*valueDim:][:valueDim])
	}
}
