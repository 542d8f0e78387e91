package metal

import (
	"fmt"
	"math"
)

// AttentionShape is the dimensions of a full attention, and where its parts lie
// in a projected row.
type AttentionShape struct {
	Heads, KVHeads int
	Dim            int
	Rotary         int // dimensions that rope turns
	Width          int // of a projected row
	K, V           int // where they start in it; queries and their gates at 0
	Eps            float32
}

const (
	// queryPad is how many rows of queries may be read beyond the last.
	queryPad = 7
	// queryRows is how many query heads of a KV head a simdgroup takes at once,
	// and so the most that decode can have.
	queryRows = 8
	// spanKeys is the least keys of a span, and spanMost the most spans of a KV
	// head: enough to fill a GPU, few enough to be merged by one threadgroup.
	spanKeys = 32
	spanMost = 128
)

// spans cuts n keys into spans: a function of the row's position alone.
func spans(n int) (keys, count int) {
	keys = spanKeys * ceil(n, spanKeys*spanMost)
	return keys, ceil(n, keys)
}

// kernel is a kernel for these heads.
func (s AttentionShape) kernel(name string) Kernel {
	return Kernel{fmt.Sprintf("%s_%d", name, s.Dim), [4]uint32{u32(s.Heads), u32(s.KVHeads)}}
}

// tokenBytes returns the bytes of a token in the KV cache.
func (s AttentionShape) tokenBytes() int { return 2 * s.KVHeads * s.Dim * 2 }

func (s AttentionShape) args(rows, from int) attendArgs {
	return attendArgs{
		Rows: u32(rows), From: u32(from), Width: u32(s.Width),
		Scale: float32(1 / math.Sqrt(float64(s.Dim))),
	}
}

// AttentionPrepare brings norm and rope to queries and keys, and puts keys and
// values in the cache.
func (e *Encoder) AttentionPrepare(s AttentionShape, projected, qNorm, kNorm, angles, q, cache Binding, rows, from int) {
	e.dispatch(s.kernel("attention_prepare"), launch{grid: grid(rows, ceil(s.Heads+2*s.KVHeads, 4)), threads: 128},
		prepareArgs{u32(rows), u32(from), u32(s.Width), u32(s.K), u32(s.V), u32(s.Rotary / 2), s.Eps},
		projected, qNorm, kNorm, angles, q, cache)
}

// AttendRows is the attention of prompt rows, gated.
func (e *Encoder) AttendRows(s AttentionShape, projected, q, cache, y Binding, rows, from int) {
	perTile := 4 * queryRows
	e.dispatch(s.kernel("attend_rows"), launch{grid: grid(ceil(rows*s.Heads/s.KVHeads, perTile), s.KVHeads), threads: 128},
		s.args(rows, from), projected, q, cache, y)
}

// AttendStep is the attention of one row at position from, gated.
func (e *Encoder) AttendStep(s AttentionShape, projected, q, cache, partial, stats, y Binding, from int) {
	keys, count := spans(from + 1)
	args := s.args(1, from)
	args.Span, args.Spans = u32(keys), u32(count)
	e.dispatch(s.kernel("attend_spans"), launch{grid: grid(count, s.KVHeads), threads: simdWidth}, args, q, cache, partial, stats)
	e.dispatch(s.kernel("attend_merge"), launch{grid: grid(s.Heads), threads: s.Dim}, args, projected, partial, stats, y)
}
