package cpu

import "calla/core/backend"

// taskWeights is about how many weights a task reads: enough to outweigh being
// handed out, few enough to share a matrix among all goroutines.
const taskWeights = 1 << 15

// outputsPerTask returns how many outputs of a matrix one task makes.
func outputsPerTask(in int) int { return max(4, taskWeights/in&^1) }

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
	size := outputsPerTask(list[0].w.In)
	all := 0
	for _, m := range list {
		all += tasks(m.w.Out, size)
	}
	sums := p.scr.sums[:list[0].w.In/groupSize]
	if p.phase == backend.Decode {
		groupSums(sums, x)
	}
	p.device.pool.run(all, func(_, task int) {
		for _, m := range list {
			n := tasks(m.w.Out, size)
			if task >= n {
				task -= n
				continue
			}
			lo, hi := task*size, min((task+1)*size, m.w.Out)
			if p.phase == backend.Decode {
				qmatvec(m.r, m.y, m.w, lo, hi, x, sums)
			} else {
				qmatmul(m.r, m.y, m.w, lo, hi, x, rows)
			}
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
