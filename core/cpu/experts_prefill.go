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
	x       []float32 // [len(rows), hidden]
	rows    []int32   // of the call
	weights []float32 // of the expert in each row's mixture
}

// prefillExperts sets out to the mixture of experts for rows x. An expert
// evaluates all its rows at once; every row adds up its experts by rising
// number, the shared one last, whoever else is in the call. Each expert's output
// is rounded; the mixture is summed in float32 and rounded at its end.
func (p *pass) prefillExperts(layer int, x, out []float32) {
	c, s, m := &p.config, &p.scr.moe, &p.layers[layer].moe
	k, rows := c.ExpertsPerToken, len(p.tokens)
	clear(out)
	s.order.assign(s.experts[:rows*k])
	for e := range c.Experts {
		entries := s.order.of(e)
		if len(entries) == 0 {
			continue
		}
		b := batch{s.in, s.rows[:len(entries)], s.share[:len(entries)]}
		for i, entry := range entries {
			b.rows[i], b.weights[i] = entry/int32(k), s.weights[entry]
			copy(b.x[i*c.Hidden:], x[int(b.rows[i])*c.Hidden:][:c.Hidden])
		}
		p.addExpert(out, m.routed(int32(e)), b)
	}
	b := batch{x, s.rows[:rows], s.mix[:rows]}
	for t := range b.rows {
		b.rows[t] = int32(t)
	}
	p.addExpert(out, m.sharedExpert(), b)
	p.observe(layer, "moe.shared", c.Hidden, s.down[:rows*c.Hidden])
	p.eachRow(func(t int) { p.r.values(out[t*c.Hidden:][:c.Hidden]) })
}

// addExpert adds an expert's weighted output to the rows that chose it.
func (p *pass) addExpert(out []float32, e expert, b batch) {
	s, n, dim, hidden := &p.scr.moe, len(b.rows), e.gate.Out, p.config.Hidden
	size := outputsPerTask(e.gate.In)
	p.device.pool.run(tasks(dim, size), func(_, task int) {
		lo, hi := task*size, min((task+1)*size, dim)
		qmatmul(p.r, s.gate, e.gate, lo, hi, b.x, n)
		qmatmul(p.r, s.up, e.up, lo, hi, b.x, n)
		for i := range n {
			SwiGLU(p.r, s.gate[i*dim+lo:i*dim+hi], s.up[i*dim+lo:i*dim+hi])
		}
	})
	size = outputsPerTask(e.down.In)
	p.device.pool.run(tasks(hidden, size), func(_, task int) {
		lo, hi := task*size, min((task+1)*size, hidden)
		qmatmul(p.r, s.down, e.down, lo, hi, s.gate, n)
		for i, row := range b.rows {
			y, weight := out[int(row)*hidden:][:hidden], b.weights[i]
			for j := lo; j < hi; j++ {
				y[j] += weight * s.down[i*hidden+j]
			}
		}
	})
}
