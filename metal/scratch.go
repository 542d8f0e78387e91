package metal

// scratch is the buffers of a call, kept from call to call. It grows with the
// rows of a call; calls of one device follow one another, so one is enough.
type scratch struct {
	rows int // what it is large enough for

	h, x, projected, mixed Binding // [rows, ..] of bfloat16
	logits, parts          Binding // of the vocabulary
	partial, stats         Binding // of decode's attention
	queries                Binding
	qkv, gates, pairs      Binding // of the chunked delta rule
	inner                  Binding // of decode's experts
	routing                Routing
	rowsInner, rowsOut     Binding // of every choice
	sharedInner, sharedOut Binding
	conv                   *Buffer // that the next call writes its conv state to

	buffers []*Buffer
}

// need is one buffer of the scratch.
type need struct {
	name  string
	bytes int
	at    *Binding
}

// needs lists the buffers of calls of at most rows rows.
func (s *scratch) needs(sh shapes, rows int) []need {
	d, a, x := sh.delta, sh.attention, sh.experts
	choices, chunks := rows*x.Chosen, min(rows, deltaBatch)
	width := max(d.Width, a.Width)
	r := &s.routing
	return []need{
		{"h", 2 * rows * sh.hidden, &s.h},
		{"x", 2 * rows * sh.hidden, &s.x},
		{"projected", 2 * rows * width, &s.projected},
		{"mixed", 2 * rows * max(d.values(), a.Heads*a.Dim), &s.mixed},
		{"logits", 4 * align(sh.vocab, tileRows), &s.logits},
		{"parts", 8 * headParts(sh.vocab), &s.parts},
		{"partial", 4 * a.KVHeads * spanMost * queryRows * a.Dim, &s.partial},
		{"stats", 8 * a.KVHeads * spanMost * queryRows, &s.stats},
		{"queries", 2 * (rows*a.Heads + queryPad) * a.Dim, &s.queries},
		{"qkv", 4 * (rows + deltaPad) * d.Channels(), &s.qkv},
		{"gates", 8 * (rows + deltaPad) * d.ValueHeads, &s.gates},
		{"pairs", chunks * d.ValueHeads * pairBytes, &s.pairs},
		{"inner", 2 * x.inner(), &s.inner},
		{"router", 4 * rows * align(x.Experts+1, tileRows), &r.Logits},
		{"experts", 4 * choices, &r.Experts},
		{"weights", 4 * rows * (x.Chosen + 1), &r.Weights},
		{"counts", 4 * ceil(rows, routeBlock) * x.Experts, &r.Counts},
		{"tiles", 12 * x.mostTiles(rows), &r.Tiles},
		{"entries", 4 * choices, &r.Entries},
		{"rows inner", 2 * choices * x.ExpertDim, &s.rowsInner},
		{"rows out", 2 * choices * sh.hidden, &s.rowsOut},
		{"shared inner", 2 * rows * x.SharedDim, &s.sharedInner},
		{"shared out", 2 * rows * sh.hidden, &s.sharedOut},
	}
}

// scratchBytes returns what a scratch for rows rows takes.
func scratchBytes(sh shapes, rows int) int64 {
	var n int64
	for _, b := range new(scratch).needs(sh, rows) {
		n += int64(b.bytes)
	}
	return n + int64(sh.deltaLayers*sh.convBytes())
}

// ensure makes the scratch large enough for a call of rows rows. No list may be
// under way where it grows.
func (s *scratch) ensure(d Driver, sh shapes, rows int) error {
	if rows <= s.rows {
		return nil
	}
	s.free(d)
	for _, n := range s.needs(sh, rows) {
		make := newPrivate
		if n.at == &s.logits { // which the processor reads
			make = Driver.NewBuffer
		}
		b, err := make(d, n.name, int64(n.bytes))
		if err != nil {
			s.free(d)
			return err
		}
		s.buffers = append(s.buffers, b)
		*n.at = b.at(0)
	}
	var err error
	if s.conv, err = newPrivate(d, "spare conv", int64(max(1, sh.deltaLayers)*sh.convBytes())); err != nil {
		s.free(d)
		return err
	}
	s.rows = rows
	return nil
}

func (s *scratch) free(d Driver) {
	for _, b := range s.buffers {
		d.Free(b)
	}
	if s.conv != nil {
		d.Free(s.conv)
	}
	*s = scratch{}
}
