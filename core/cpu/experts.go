package cpu

// expert is one feed-forward network: down( silu(gate x) × (up x) ).
type expert struct{ gate, up, down Matrix }

func (m *moeWeights) routed(e int32) expert {
	return expert{m.gate.expert(int(e)), m.up.expert(int(e)), m.down.expert(int(e))}
}

func (m *moeWeights) sharedExpert() expert { return expert{m.sharedGate, m.sharedUp, m.shared} }

// decodeExperts sets out to the mixture of experts for one row x: the chosen
// experts times their weights, the largest weight first, then the shared expert
// times its own. Each expert's output is rounded; the mixture is summed in
// float32 and rounded at its end.
func (p *pass) decodeExperts(m *moeWeights, x, out []float32) {
	c, s := &p.config, &p.scr.moe
	k := c.ExpertsPerToken
	groupSums(p.scr.sums[:c.Hidden/groupSize], x)
	size := outputsPerTask(c.Hidden)
	each := tasks(c.ExpertDim, size)
	p.device.pool.run(k*each+tasks(c.SharedExpertDim, size), func(_, task int) {
		slot := min(task/each, k)
		lo := (task - slot*each) * size
		p.activate(m, slot, lo, lo+size, x)
	})

	width := k*c.ExpertDim + c.SharedExpertDim
	groupSums(s.sums, s.gate[:width])
	size = outputsPerTask(width)
	p.device.pool.run(tasks(c.Hidden, size), func(_, task int) {
		p.mix(m, out, task*size, min((task+1)*size, c.Hidden))
	})
}

// slot returns the expert of one of a row's slots, where its inner values start
// and its weight. The shared expert comes behind the chosen ones.
func (p *pass) slot(m *moeWeights, slot int) (e expert, at int, weight float32) {
	s, k := &p.scr.moe, p.config.ExpertsPerToken
	if slot == k {
		return m.sharedExpert(), k * p.config.ExpertDim, s.mix[0]
	}
	return m.routed(s.experts[slot]), slot * p.config.ExpertDim, s.weights[slot]
}

// activate makes inner values lo to hi, or to the end, of one slot's expert.
func (p *pass) activate(m *moeWeights, slot, lo, hi int, x []float32) {
	e, at, _ := p.slot(m, slot)
	hi = min(hi, e.gate.Out)
	gate, up := p.scr.moe.gate[at:][:e.gate.Out], p.scr.moe.up[at:][:e.gate.Out]
	sums := p.scr.sums[:e.gate.In/groupSize]
	qmatvec(p.r, gate, e.gate, lo, hi, x, sums)
	qmatvec(p.r, up, e.up, lo, hi, x, sums)
	SwiGLU(p.r, gate[lo:hi], up[lo:hi])
}

// mix makes outputs lo to hi of the mixture.
func (p *pass) mix(m *moeWeights, out []float32, lo, hi int) {
	s := &p.scr.moe
	clear(out[lo:hi])
	for slot := range p.config.ExpertsPerToken + 1 {
		e, at, weight := p.slot(m, slot)
		inner, groups := s.gate[at:][:e.down.In], e.down.In/groupSize
		qmatvec(p.r, s.down, e.down, lo, hi, inner, s.sums[at/groupSize:][:groups])
		for n := lo; n < hi; n++ {
			out[n] += weight * s.down[n]
		}
	}
	p.r.values(out[lo:hi])
}
