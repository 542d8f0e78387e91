package engine

import (
	"slices"
	"sort"

	"calla/core/backend"
)

// Turn says which tokens end a turn. A segment of the delta rule's grid starts
// after each EndOfTurn together with a Newline that follows it.
type Turn struct {
	EndOfTurn int32
	Newline   int32
}

// grid is where a sequence of tokens may be cut: it is a function of the token
// ids alone, so that every run over the same tokens walks the same sub-chunks.
type grid struct {
	starts []int // segment starts, rising; the first is 0
}

func newGrid(tokens []int32, turn Turn) grid {
	g := grid{starts: []int{0}}
	for i := 0; ; i++ {
		next := slices.Index(tokens[i:], turn.EndOfTurn)
		if next < 0 {
			return g
		}
		i += next
		if i+1 < len(tokens) && tokens[i+1] == turn.Newline {
			i++
		}
		g.starts = append(g.starts, i+1)
	}
}

// segment returns the index of the segment that holds position p.
func (g grid) segment(p int) int {
	return sort.SearchInts(g.starts, p+1) - 1
}

// isEdge reports whether a call may begin at p.
func (g grid) isEdge(p int) bool {
	return (p-g.starts[g.segment(p)])%backend.SubChunk == 0
}

// edgeBefore returns the last edge at or before p.
func (g grid) edgeBefore(p int) int {
	s := g.starts[g.segment(p)]
	return s + (p-s)/backend.SubChunk*backend.SubChunk
}

// covering returns the segment starts that a call over [from, to) needs: the
// one that from lies in, and those inside the call.
func (g grid) covering(from, to int) []int {
	a, b := g.segment(from), sort.SearchInts(g.starts, to)
	return g.starts[a:max(b, a+1)]
}

// callEnds cuts a prefill of tokens [from, n) into calls of at most chunk rows
// and returns where each ends. Calls also end at the positions in stops, which
// are edges. From is an edge; chunk is a multiple of backend.SubChunk.
func (g grid) callEnds(from, n, chunk int, stops []int) []int {
	var ends []int
	for p := from; p < n; p = ends[len(ends)-1] {
		ends = append(ends, g.callEnd(p, n, chunk, stops))
	}
	return ends
}

// callEnd returns where the first of those calls ends.
func (g grid) callEnd(from, n, chunk int, stops []int) int {
	end := min(from+chunk, n)
	if i := sort.SearchInts(stops, from+1); i < len(stops) && stops[i] < end {
		end = stops[i]
	}
	if end < n {
		// Two edges are never further apart than a sub-chunk, so there is one
		// after from.
		end = g.edgeBefore(end)
	}
	return end
}
