package engine

import (
	"slices"

	"calla/core/backend"
)

// snapshotEvery is how far apart snapshots inside a long segment are, in
// tokens: what an edit deep inside a long document costs at most, half of it on
// average, against one snapshot's memory.
const snapshotEvery = 8192

// snapshotsPerEntry bounds the snapshots of one cached sequence. Four are
// always worth their memory in a chat: the end of the system block, the two
// ends of the last user message and the newest; the others serve edits deeper
// in the past.
const snapshotsPerEntry = 6

// landmarks returns the positions at which a prefill of [from, n) should leave
// snapshots, rising. Keep are the caller's: where it expects a later prompt to
// branch off. All are edges of g, behind from and before n.
func landmarks(g grid, from, n int, keep []int) []int {
	var at []int
	for _, p := range keep {
		if p > 0 && p < n && g.isEdge(p) {
			at = append(at, p)
		}
	}
	newest := g.starts[g.segment(n-1)]
	if newest == 0 {
		// One segment alone: its last edge serves a prompt that goes on.
		newest = g.edgeBefore(n - 1)
	}
	at = append(at, newest)
	for i, s := range g.starts {
		end := n
		if i+1 < len(g.starts) {
			end = min(end, g.starts[i+1])
		}
		for p := s + snapshotEvery; p < end; p += snapshotEvery {
			at = append(at, p)
		}
	}
	slices.Sort(at)
	at = slices.Compact(at)
	return slices.DeleteFunc(at, func(p int) bool { return p <= from })
}

// survivors returns which of the positions a sequence's snapshots lie at,
// rising, are kept: those in keep, the newest, and of the others as many of
// the latest as fit.
func survivors(at, keep []int, limit int) []int {
	if len(at) <= limit {
		return at
	}
	kept := make([]bool, len(at))
	room := limit
	mark := func(i int) {
		if !kept[i] && room > 0 {
			kept[i] = true
			room--
		}
	}
	mark(len(at) - 1)
	// The caller names its landmarks by rising position; the last user message
	// and the system block matter more than what lies between.
	for _, p := range byWorth(keep) {
		if i, found := slices.BinarySearch(at, p); found {
			mark(i)
		}
	}
	for i := len(at) - 1; i >= 0; i-- {
		mark(i)
	}
	var out []int
	for i, p := range at {
		if kept[i] {
			out = append(out, p)
		}
	}
	return out
}

// byWorth orders landmarks: the first (the system block's end), then from the
// last backwards.
func byWorth(keep []int) []int {
	if len(keep) == 0 {
		return nil
	}
	k := slices.Sorted(slices.Values(keep))
	out := []int{k[0]}
	for i := len(k) - 1; i > 0; i-- {
		out = append(out, k[i])
	}
	return out
}

// A compile-time check that long-segment snapshots lie on the grid.
const _ = uint(-(snapshotEvery % backend.SubChunk))
