package metal

import (
	"fmt"

	"calla/core/backend"
)

const (
	// deltaPad is how many rows of zeros follow the last, so that a sub-chunk
	// can always be read whole.
	deltaPad = backend.SubChunk - 1
	// deltaBatch is how many sub-chunks have their pairs in memory at once.
	deltaBatch = 32
	// deltaColumns is how many value dimensions one threadgroup walks.
	deltaColumns = 32
)

// pairBytes returns the bytes of the pairs of one sub-chunk and value head.
const pairBytes = 2 * backend.SubChunk * backend.SubChunk * 4

// DeltaPrepare makes queries, keys, values and gates from projected rows.
func (e *Encoder) DeltaPrepare(s DeltaShape, w DeltaWeights, projected, convIn, convOut, qkv, gates Binding, rows int) {
	heads := 2*s.KeyHeads + s.ValueHeads
	e.dispatch(s.kernel("delta_prepare"), launch{grid: grid(rows+deltaPad, ceil(heads, 8)), threads: 256}, s.args(rows),
		projected, convIn, convOut, w.Taps, w.Rate, w.DT, qkv, gates)
}

// DeltaChunks runs the delta rule over all sub-chunks of the list chunks.
func (e *Encoder) DeltaChunks(s DeltaShape, chunks Binding, count int, qkv, gates, pairs, state, o Binding) {
	for first := 0; first < count; first += deltaBatch {
		n := min(deltaBatch, count-first)
		args := chunkArgs{u32(first), u32(n)}
		e.dispatch(s.kernel("delta_pairs"), launch{grid: grid(n, s.ValueHeads), threads: 128}, args,
			chunks, qkv, gates, pairs)
		e.dispatch(s.kernel("delta_chunk"), launch{grid: grid(s.ValueDim/deltaColumns, s.ValueHeads), threads: 128}, args,
			chunks, qkv, gates, pairs, state, o)
	}
}

// gatedNorm is the kernel of GatedNormRows.
func (s DeltaShape) gatedNorm() Kernel {
	return Kernel{fmt.Sprintf("gated_norm_rows_%d", s.ValueDim), [4]uint32{u32(s.ValueHeads)}}
}

// GatedNormRows normalises and gates o in place.
func (e *Encoder) GatedNormRows(s DeltaShape, w DeltaWeights, projected, o Binding, rows int) {
	e.dispatch(s.gatedNorm(), launch{grid: grid(rows, ceil(s.ValueHeads, 4)), threads: 128},
		s.args(rows), projected, w.Norm, o)
}
