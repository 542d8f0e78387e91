package cpu

// vector is one row as the products of decode take it: with the sums of its
// quantisation groups, or as integers.
type vector struct {
	x    []float32
	sums []float32
	a    activations // of one row
}

// newVector makes a vector of x in the memory given. It is of use where
// prepared.
func (p *pass) newVector(x, sums, memory []float32) vector {
	if p.integer == nil {
		return vector{x: x, sums: sums[:len(x)/groupSize]}
	}
	v := vector{x: x, a: newActivations(memory, len(x))}
	v.a.clearRest(0)
	return v
}

// prepare looks at columns lo to hi of a vector, which lie between quantisation
// groups.
func (p *pass) prepare(v vector, lo, hi int) {
	if p.integer == nil {
		groupSums(v.sums[lo/groupSize:hi/groupSize], v.x[lo:hi])
		return
	}
	p.integer.prepare(v.a, 0, lo, hi, v.x)
}

// matVec makes outputs lo to hi of W x.
func (p *pass) matVec(r Rounding, y []float32, w Matrix, lo, hi int, v vector) {
	if p.integer == nil {
		qmatvec(r, y, w, lo, hi, v.x, v.sums)
		return
	}
	p.integer.matVec(y, w, lo, hi, v.a, 0)
	p.k.round(r, y[lo:hi])
}

// rowBatch is rows as the products of prefill take them: n rows x of width in,
// or n rows of integers. Those are tiled for a matrix unit, else the rows of a
// that index names, or its first.
type rowBatch struct {
	x     []float32
	n, in int
	a     activations
	index []int32
	tiled tiled
}

// newBatch makes a batch of n rows x of width in. With integers it is in the
// memory given, and of use where prepared.
func (p *pass) newBatch(x, memory []float32, in, n int) rowBatch {
	b := rowBatch{x: x, n: n, in: in}
	if p.integer != nil {
		p.integer.layOut(&b, memory)
	}
	return b
}

// multiply makes columns lo to hi of y = x Wᵀ; with integers lo is a multiple
// of a panel's rows, and so is hi unless it is the last. What the goroutine is
// likely to multiply with next is fetched meanwhile.
func (p *pass) multiply(worker int, r Rounding, y []float32, w Matrix, lo, hi int, b rowBatch, next panel) {
	if p.integer == nil {
		qmatmul(r, y, w, lo, hi, b.x, b.n)
		return
	}
	rows := p.integer.panel
	for n := lo; n < hi; n += rows {
		ahead := next
		if n+rows < hi {
			ahead = panel{w, n + rows}
		}
		p.integer.multiply(&p.scr.workers[worker].panel, y, w, n, b, ahead)
	}
	for t := range b.n {
		p.k.round(r, y[t*w.Out+lo:t*w.Out+hi])
	}
}

// batchFloats returns the float32 values that a batch of rows of width in takes.
func batchFloats(in, rows int) int { return max(activationFloats(in, rows), tiledFloats(in, rows)) }
