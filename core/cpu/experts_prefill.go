package cpu

// assignment lists, expert by expert, the rows that chose it.
//
//	starts   [experts + 1] where an expert's entries begin
//	entries  [rows × experts a token] row × experts a token + slot, ascending
//	         within an expert
type assignment struct{ starts, entries []int32 }

func newAssignment(choices, experts int) assignment {
	return assignment{make([]int32, experts+1), make([]int32, choices)}
}

// assign sorts the rows' choices by expert.
func (a *assignment) assign(chosen []int32) {
	clear(a.starts)
	for _, e := range chosen {
		a.starts[e]++
	}
	// Each start is an expert's end for now; filling from behind brings it down.
	for e := 1; e < len(a.starts); e++ {
		a.starts[e] += a.starts[e-1]
	}
	for i := len(chosen) - 1; i >= 0; i-- {
		e := chosen[i]
		a.starts[e]--
		a.entries[a.starts[e]] = int32(i)
	}
}

// of returns an expert's entries.
func (a *assignment) of(e int) []int32 { return a.entries[a.starts[e]:a.starts[e+1]] }

// batch is the rows that one expert evaluates together.
type batch struct {
	rowBatch
	rows    []int32   // of the call
	weights []float32 // of the expert in each row's mixture
}

// prefillExperts sets out to the mixture of experts for rows x. An expert
// evaluates all its rows at once; every row adds up its experts by rising
// number, the shared one last, whoever else is in the call. Each expert's output
// is rounded; the mixture is summed in float32 and rounded at its end.
func (p *pass) prefillExperts(layer int, x, out []float32) {
	c, s, m := &p.config, &p.scr.moe, &p.layers[layer].moe
	rows := len(p.tokens)
	clear(out)
	s.order.assign(s.experts[:rows*c.ExpertsPerToken])
	all := p.newBatch(x, p.scr.rows, c.Hidden, rows) // the router has prepared it
	for e := range c.Experts {
		if entries := s.order.of(e); len(entries) > 0 {
			p.addExpert(out, m.routed(int32(e)), p.gather(all, entries))
		}
	}
	for t := range rows {
		s.rows[t] = int32(t)
	}
	p.addExpert(out, m.sharedExpert(), batch{all, s.rows[:rows], s.mix[:rows]})
	p.observe(layer, "moe.shared", c.Hidden, s.down[:rows*c.Hidden])
	p.eachRow(func(t int) { p.k.round(p.r, out[t*c.Hidden:][:c.Hidden]) })
}

// gather returns the rows that chose an expert. Integers stay where they are,
// unless they must lie in tiles.
func (p *pass) gather(all rowBatch, entries []int32) batch {
	s, hidden := &p.scr.moe, p.config.Hidden
	n := len(entries)
	b := batch{rowBatch{n: n, in: hidden, a: all.a, index: s.rows[:n]}, s.rows[:n], s.share[:n]}
	for i, entry := range entries {
		b.rows[i], b.weights[i] = entry/int32(p.config.ExpertsPerToken), s.weights[entry]
	}
	switch {
	case p.integer == nil:
		b.x = s.in
		for i, row := range b.rows {
			copy(b.x[i*hidden:], all.x[int(row)*hidden:][:hidden])
		}
	case p.integer.unit != nil:
		b.tiled = newTiled(s.in, hidden, n)
		const size = 4
		p.device.pool.run(tasks(n, size), func(_, task int) {
			for t := task * size; t < min((task+1)*size, n); t++ {
				b.tiled.take(t, all.tiled, int(b.rows[t]))
			}
		})
	}
	return b
}

// addExpert adds an expert's weighted output to the rows that chose it.
func (p *pass) addExpert(out []float32, e expert, b batch) {
	s, dim, hidden := &p.scr.moe, e.gate.Out, p.config.Hidden
	inner := p.newBatch(s.gate, s.inner, dim, b.n)
	const size = panelOutputs
	p.device.pool.run(tasks(dim, size), func(worker, task int) {
		lo, hi := task*size, min((task+1)*size, dim)
		p.multiply(worker, p.r, s.gate, e.gate, lo, hi, b.rowBatch, panel{e.up, lo})
		p.multiply(worker, p.r, s.up, e.up, lo, hi, b.rowBatch, p.following(e.gate, lo))
		for t := range b.n {
			p.k.swiGLU(p.r, s.gate[t*dim+lo:t*dim+hi], s.up[t*dim+lo:t*dim+hi])
			if p.integer != nil {
				p.integer.prepareRow(inner, t, lo, hi)
			}
		}
	})
	p.device.pool.run(tasks(hidden, size), func(worker, task int) {
		lo, hi := task*size, min((task+1)*size, hidden)
		p.multiply(worker, p.r, s.down, e.down, lo, hi, inner, p.following(e.down, lo))
		for i, row := range b.rows {
			p.k.addScaled(out[int(row)*hidden+lo:int(row)*hidden+hi], b.weights[i:i+1], s.down[i*hidden+lo:i*hidden+hi], 0)
		}
	})
}
