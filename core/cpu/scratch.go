package cpu

import "calla/core/checkpoint"

const (
	// spanKeys is how many keys one task of a decode step's attention takes.
	spanKeys = 8 * keyBlock
	// tileRows is how many rows one task of a prefill's attention takes.
	tileRows = 16
)

// scratch is the memory of a call, kept from call to call. Blocks follow one
// another, so the buffers of one lie where those of the last were.
type scratch struct {
	region               region
	roomRows, roomTokens int // what it is large enough for

	h, x, out []float32 // [rows, hidden]: residual stream, normed input, block's output
	sums      []float32 // group sums of one row
	rows      []float32 // activations of every row of a product
	logits    []float32 // [vocab]

	delta     deltaScratch
	attention attentionScratch
	moe       moeScratch
	workers   []workerScratch
}

type deltaScratch struct {
	qkv  []float32 // [taps-1 + rows, conv]; later o, [rows, value]
	conv []float32 // [rows, conv]
	z    []float32 // [rows, value]
	b, a []float32 // [rows, value heads]
}

type attentionScratch struct {
	q        []float32 // [rows, heads, 2, head dim]: query, gate
	k, v     []float32 // [rows, KV heads, head dim]
	o        []float32 // [rows, heads, head dim]
	cos, sin []float32 // [rows, rotary dims / 2]
	spans    []float32 // [spans, heads, 2 + head dim]
}

type moeScratch struct {
	logits   []float32 // [rows, experts]
	mix      []float32 // [rows]
	weights  []float32 // [rows, experts a token]
	in       []float32 // [rows, hidden], or tiled: the rows of one expert
	gate, up []float32 // prefill: [rows, expert dim]; decode: one row of each expert
	down     []float32 // [rows, hidden]
	sums     []float32 // group sums of gate in decode
	inner    []float32 // activations of gate
	slots    []slot    // decode
	share    []float32 // [rows]: one expert's weight in them
	rows     []int32   // [rows]: those of one expert
	experts  []int32   // [rows, experts a token]
	order    assignment
}

// workerScratch belongs to one goroutine of the pool.
type workerScratch struct {
	chunk        *chunkScratch
	keys, values []float32 // [block, head dim]
	keysT        []float32 // fast kernels: [head dim, block]
	scores       []float32 // [queries of a KV head, block]
	partials     []float32 // [tile rows, queries of a KV head, 2 + head dim]
	panel        panelScratch
}

// scratchBytes returns what a scratch takes: the floats that layOut counts, and
// the integers of the experts' assignment.
func scratchBytes(c checkpoint.Config, rows, tokens, threads int) int {
	carve := &carver{dry: true}
	new(scratch).layOut(carve, c, rows, tokens, threads)
	return 4 * (carve.used + rows + 2*rows*c.ExpertsPerToken + c.Experts + 1)
}

// ensure makes the scratch large enough. What it held is lost where it grows.
func (s *scratch) ensure(c checkpoint.Config, rows, tokens, threads int) error {
	if rows <= s.roomRows && tokens <= s.roomTokens {
		return nil
	}
	rows, tokens = max(rows, s.roomRows), max(tokens, s.roomTokens)
	if err := s.region.free(); err != nil {
		return err
	}
	*s = scratch{}
	count := &carver{dry: true}
	s.layOut(count, c, rows, tokens, threads)
	r, err := newRegion(4 * count.used)
	if err != nil {
		return err
	}
	s.region, s.roomRows, s.roomTokens = r, rows, tokens
	s.layOut(&carver{memory: r.floats()}, c, rows, tokens, threads)
	s.moe.rows = make([]int32, rows)
	s.moe.experts = make([]int32, rows*c.ExpertsPerToken)
	s.moe.order = newAssignment(rows*c.ExpertsPerToken, c.Experts)
	return nil
}

func (s *scratch) layOut(v *carver, c checkpoint.Config, rows, tokens, threads int) {
	d := newDims(c)
	s.h, s.x, s.out = v.floats(rows*c.Hidden), v.floats(rows*c.Hidden), v.floats(rows*c.Hidden)
	widest := max(c.Hidden, d.deltaValue, d.query)
	s.sums = v.floats(widest / groupSize)
	s.rows = v.aligned(batchFloats(widest, rows))
	s.logits = v.floats(c.Vocab)
	s.workers = make([]workerScratch, threads)
	for i := range s.workers {
		s.workers[i].layOut(v, c, max(widest, c.ExpertDim, c.SharedExpertDim), rows)
	}
	from, most := v.used, 0
	for _, block := range []func(){
		func() { s.delta.layOut(v, c, d, rows) },
		func() { s.attention.layOut(v, c, d, rows, tokens) },
		func() { s.moe.layOut(v, c, rows) },
	} {
		v.used = from
		block()
		most = max(most, v.used)
	}
	v.used = most
}

func (s *deltaScratch) layOut(v *carver, c checkpoint.Config, d dims, rows int) {
	s.qkv, s.conv = v.floats((c.ConvTaps-1+rows)*d.conv), v.floats(rows*d.conv)
	s.z = v.floats(rows * d.deltaValue)
	s.b, s.a = v.floats(rows*c.DeltaValueHeads), v.floats(rows*c.DeltaValueHeads)
}

func (s *attentionScratch) layOut(v *carver, c checkpoint.Config, d dims, rows, tokens int) {
	s.q, s.o = v.floats(rows*2*d.query), v.floats(rows*d.query)
	s.k, s.v = v.floats(rows*d.kv), v.floats(rows*d.kv)
	s.cos, s.sin = v.floats(rows*c.RotaryDims/2), v.floats(rows*c.RotaryDims/2)
	s.spans = v.floats((tokens + spanKeys - 1) / spanKeys * c.Heads * (2 + c.HeadDim))
}

func (s *moeScratch) layOut(v *carver, c checkpoint.Config, rows int) {
	s.logits, s.mix = v.floats(rows*c.Experts), v.floats(rows)
	s.weights, s.share = v.floats(rows*c.ExpertsPerToken), v.floats(rows)
	s.in = v.aligned(max(rows*c.Hidden, tiledFloats(c.Hidden, rows)))
	s.down = v.floats(rows * c.Hidden)
	// One row of every chosen expert, in decode, or all rows of one.
	width := max(c.ExpertsPerToken*c.ExpertDim+c.SharedExpertDim, rows*max(c.ExpertDim, c.SharedExpertDim))
	s.gate, s.up = v.floats(width), v.floats(width)
	s.sums = v.floats((c.ExpertsPerToken*c.ExpertDim + c.SharedExpertDim) / groupSize)
	s.inner = v.aligned(max(
		activationFloats(c.ExpertDim, c.ExpertsPerToken)+activationFloats(c.SharedExpertDim, 1),
		batchFloats(max(c.ExpertDim, c.SharedExpertDim), rows)))
}

func (w *workerScratch) layOut(v *carver, c checkpoint.Config, widest, rows int) {
	w.chunk = newChunkScratch(v, c.DeltaKeyDim, c.DeltaValueDim)
	w.keys, w.values = v.floats(keyBlock*c.HeadDim), v.floats(keyBlock*c.HeadDim)
	group := c.Heads / c.KVHeads
	w.keysT, w.scores = v.floats(keyBlock*c.HeadDim), v.floats(group*keyBlock)
	w.partials = v.floats(tileRows * group * (2 + c.HeadDim))
	w.panel.layOut(v, widest, rows)
}
