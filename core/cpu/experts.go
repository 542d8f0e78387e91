package cpu

// expert is one feed-forward network: down( silu(gate x) × (up x) ).
type expert struct{ gate, up, down Matrix }

func (m *moeWeights) routed(e int32) expert {
	return expert{m.gate.expert(int(e)), m.up.expert(int(e)), m.down.expert(int(e))}
}

func (m *moeWeights) sharedExpert() expert { return expert{m.sharedGate, m.sharedUp, m.shared} }

// slot is one of the experts that a row passes through in decode: the chosen
// ones, the largest weight first, then the shared one.
type slot struct {
	expert
	weight []float32 // one
	up     []float32
	inner  vector // silu(gate x) × (up x)
}

// decodeExperts sets out to the mixture of experts for one row x: the slots'
// outputs times their weights, in order. Each expert's output is rounded; the
// mixture is summed in float32 and rounded at its end.
func (p *pass) decodeExperts(m *moeWeights, x, out []float32) {
	c := &p.config
	v := p.newVector(x, p.scr.sums, p.scr.rows)
	p.prepare(v, 0, len(x))
	slots := p.layOutSlots(m)
	size := p.outputsPerTask(slots[0].gate, groupSize)
	each := tasks(c.ExpertDim, size)
	p.device.pool.run((len(slots)-1)*each+tasks(c.SharedExpertDim, size), func(_, task int) {
		n := min(task/each, len(slots)-1)
		lo := (task - n*each) * size
		p.activate(&slots[n], lo, lo+size, v)
	})
	size = max(4, mostWeights/4/(len(slots)*c.ExpertDim)&^3)
	p.device.pool.run(tasks(c.Hidden, size), func(_, task int) {
		p.mix(slots, out, task*size, min((task+1)*size, c.Hidden))
	})
}

// layOutSlots gives every slot its expert and its memory.
func (p *pass) layOutSlots(m *moeWeights) []slot {
	c, s := &p.config, &p.scr.moe
	s.slots = s.slots[:0]
	gate, up, sums, rows := s.gate, s.up, s.sums, s.inner
	for k := range c.ExpertsPerToken + 1 {
		e, weight := m.sharedExpert(), s.mix[:1]
		if k < c.ExpertsPerToken {
			e, weight = m.routed(s.experts[k]), s.weights[k:k+1]
		}
		dim := e.gate.Out
		s.slots = append(s.slots, slot{e, weight, up[:dim], p.newVector(gate[:dim], sums, rows)})
		gate, up, sums, rows = gate[dim:], up[dim:], sums[dim/groupSize:], rows[activationFloats(dim, 1):]
	}
	return s.slots
}

// activate makes inner values lo to hi, or to the end, of one slot's expert.
func (p *pass) activate(s *slot, lo, hi int, v vector) {
	hi = min(hi, s.gate.Out)
	p.matVec(p.r, s.inner.x, s.gate, lo, hi, v)
	p.matVec(p.r, s.up, s.expert.up, lo, hi, v)
	p.k.swiGLU(p.r, s.inner.x[lo:hi], s.up[lo:hi])
	p.prepare(s.inner, lo, hi)
}

// mix makes outputs lo to hi of the mixture.
func (p *pass) mix(slots []slot, out []float32, lo, hi int) {
	down := p.scr.moe.down
	clear(out[lo:hi])
	for i := range slots {
		s := &slots[i]
		p.matVec(p.r, down, s.down, lo, hi, s.inner)
		p.k.addScaled(out[lo:hi], s.weight, down[lo:hi], 0)
	}
	p.k.round(p.r, out[lo:hi])
}
