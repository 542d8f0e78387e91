package cpu

import "calla/core/backend"

// Tasks of a matrix read between leastWeights and mostWeights, so that they
// outweigh being handed out and there are some for every goroutine.
const (
	leastWeights = 1 << 14
	mostWeights  = 1 << 17
)

// panelOutputs is how many outputs one task makes of a matrix for all rows: a
// quantisation group of what follows, and whole panels.
const panelOutputs = groupSize

// outputsPerTask returns how many outputs one task makes of a matrix for one
// row. Sizes are multiples of step.
func (p *pass) outputsPerTask(w Matrix, step int) int {
	share := w.Out / (4 * p.device.options.Threads)
	size := min(max(share, leastWeights/w.In), mostWeights/w.In)
	return max(step, size/step*step)
}

// tasks returns how many tasks of size make n.
func tasks(n, size int) int { return (n + size - 1) / size }

// product is one matrix times the rows of a call.
type product struct {
	w Matrix
	y []float32 // [rows, Out]
	r Rounding
}

// products multiplies rows of x with several matrices, sharing all outputs among
// the pool. The phase chooses the kernel.
func (p *pass) products(x []float32, rows int, list ...product) {
	if p.phase == backend.Decode {
		p.vectorProducts(x, list...)
		return
	}
	b := p.newBatch(x, p.scr.rows, list[0].w.In, rows)
	if p.integer != nil {
		p.eachRow(func(t int) { p.integer.prepareRow(b, t, 0, b.in) })
	}
	p.shared(list, func(product) int { return panelOutputs }, func(worker int, m product, lo, hi int) {
		p.multiply(worker, m.r, m.y, m.w, lo, hi, b, p.following(m.w, lo))
	})
}

// following returns the panel that a goroutine is likely to take after that at
// lo: each of the others takes one meanwhile.
func (p *pass) following(w Matrix, lo int) panel {
	return panel{w, lo + panelOutputs*p.device.options.Threads}
}

// vectorProducts multiplies one row with several matrices, in decode and, for
// the head, in prefill too.
func (p *pass) vectorProducts(x []float32, list ...product) {
	v := p.newVector(x, p.scr.sums, p.scr.rows)
	p.prepare(v, 0, len(x))
	size := func(m product) int { return p.outputsPerTask(m.w, 4) }
	p.shared(list, size, func(_ int, m product, lo, hi int) {
		p.matVec(m.r, m.y, m.w, lo, hi, v)
	})
}

// shared calls do for outputs lo to hi of each product, sizes of them a task.
func (p *pass) shared(list []product, size func(product) int, do func(worker int, m product, lo, hi int)) {
	all := 0
	for _, m := range list {
		all += tasks(m.w.Out, size(m))
	}
	p.device.pool.run(all, func(worker, task int) {
		for _, m := range list {
			size := size(m)
			if n := tasks(m.w.Out, size); task >= n {
				task -= n
				continue
			}
			do(worker, m, task*size, min((task+1)*size, m.w.Out))
			return
		}
	})
}

// eachRow calls f for every row of the call.
func (p *pass) eachRow(f func(t int)) {
	const size = 8
	rows := len(p.tokens)
	p.device.pool.run(tasks(rows, size), func(_, task int) {
		for t := task * size; t < min((task+1)*size, rows); t++ {
			f(t)
		}
	})
}
