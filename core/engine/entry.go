package engine

import (
	"slices"

	"calla/core/backend"
)

// entry is a cached sequence. Its KV cache holds at least tokens; what lies
// behind them is of no use. The tokens behind the last snapshot tell where a
// prompt parts from the sequence.
type entry struct {
	key    string
	tokens []int32
	snaps  []snapshot // by rising length
	state  backend.State
	worth  int // clock at its last use + tokens to rebuild it
}

// snapshot is shared by the entries that branched off behind it.
type snapshot struct {
	backend.Snapshot
	refs *int
}

func newSnapshot(s backend.Snapshot) snapshot {
	n := 1
	return snapshot{s, &n}
}

func (s snapshot) share() snapshot {
	*s.refs++
	return s
}

func (s snapshot) release() {
	if *s.refs--; *s.refs == 0 {
		s.Close()
	}
}

func (e *entry) bytes() int64 {
	n := e.state.Bytes()
	for _, s := range e.snaps {
		n += s.Bytes()
	}
	return n
}

// cut drops what lies behind the first n tokens.
func (e *entry) cut(n int) {
	e.tokens = e.tokens[:min(n, len(e.tokens))]
	for len(e.snaps) > 0 && e.snaps[len(e.snaps)-1].Len() > n {
		e.snaps[len(e.snaps)-1].release()
		e.snaps = e.snaps[:len(e.snaps)-1]
	}
}

// close gives the entry's memory back.
func (e *entry) close() {
	e.cut(0)
	e.state.Close()
}

// longest returns the length of the entry's longest snapshot of at most n
// tokens that lies on g, or 0.
func (e *entry) longest(n int, g grid) int {
	for _, s := range slices.Backward(e.snaps) {
		// An entry's last snapshot may lie behind an end of turn whose newline
		// only this prompt has; there the grids differ.
		if s.Len() <= n && g.isEdge(s.Len()) {
			return s.Len()
		}
	}
	return 0
}

func (e *entry) snapshotAt(n int) snapshot {
	for _, s := range e.snaps {
		if s.Len() == n {
			return s
		}
	}
	panic("engine: no snapshot at a length that find returned")
}

// branch makes an entry of a state and the first tokens of a hit. It returns
// nil where there is no memory for that, and closes the state then.
func branch(s backend.State, h hit, key string) *entry {
	e := &entry{key: key, state: s}
	sound := false
	defer func() {
		if !sound {
			e.close()
		}
	}()
	if s.CopyKV(h.entry.state, h.length) != nil || s.Restore(h.entry.snapshotAt(h.length).Snapshot) != nil {
		return nil
	}
	sound = true
	e.tokens = slices.Clone(h.entry.tokens[:h.length])
	for _, s := range h.entry.snaps {
		if s.Len() <= h.length {
			e.snaps = append(e.snaps, s.share())
		}
	}
	return e
}
