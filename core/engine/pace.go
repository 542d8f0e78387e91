package engine

import (
	"time"

	"calla/core/backend"
)

// pace sizes prefill calls so that none takes much longer than a device wants
// (see backend.Traits), by how long the last ones took. It changes speed, never a
// result: any multiple of backend.SubChunk gives the same bits.
type pace struct {
	most   int           // --prefill-chunk
	budget time.Duration // of a call; 0 is any time
	rows   int           // of the next call, at most
}

// firstRows is how many rows a device begins with whose speed is not known yet.
const firstRows = 4 * backend.SubChunk

func newPace(most int, budget time.Duration) pace {
	p := pace{most: most, budget: budget, rows: most}
	if budget > 0 {
		p.rows = min(most, firstRows)
	}
	return p
}

// took notes what a call of that many rows took. A call that was too long makes
// the next ones shorter at once. They grow again by at most twice a call, and
// only by calls that are not much shorter than they may be: a few rows cost more
// each, since every call reads the experts that it needs.
func (p *pace) took(rows int, d time.Duration) {
	if p.budget == 0 || rows <= 0 {
		return
	}
	d = max(d, 1)
	fit := int(min(float64(rows)*float64(p.budget)/float64(d), float64(p.most)))
	fit = max(fit-fit%backend.SubChunk, backend.SubChunk)
	switch {
	case d > p.budget:
		p.rows = min(p.rows, fit)
	case rows >= p.rows/2:
		p.rows = max(p.rows, min(fit, 2*p.rows))
	}
}
