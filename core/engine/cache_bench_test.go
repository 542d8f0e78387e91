package engine

import (
	"fmt"
	"testing"

	"calla/core/backend"
	"calla/core/backend/backendtest"
)

// BenchmarkLookup finds the best start for a prompt among two cached sequences
// that share all of it but the end: segments, prefixes, the hit and the reason
// of a miss.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{4 << 10, 128 << 10} {
		b.Run(fmt.Sprintf("tokens=%d", n), func(b *testing.B) {
			d := &backendtest.Device{Vocab: vocab}
			w, err := d.Load(b.Context(), nil, nil)
			if err != nil {
				b.Fatal(err)
			}
			c := newPrefixCache(2, 1<<40)
			var talk []int32
			for i := 0; len(talk) < n; i++ {
				talk = append(talk, turn(i, 100)...)
			}
			for i := range 2 {
				s, err := w.NewState(n * 2)
				if err != nil {
					b.Fatal(err)
				}
				e := &entry{state: s, tokens: join(talk, turn(i, 30))}
				snap, err := s.Save()
				if err != nil {
					b.Fatal(err)
				}
				e.snaps = append(e.snaps, newSnapshot(longSnapshot{snap, len(talk)}))
				c.put(e)
			}
			defer c.drop()
			prompt := join(talk, turn(9, 30), open)
			for b.Loop() {
				if h := c.find(prompt, newGrid(prompt, Turn{imEnd, newline}), "key"); h.length != len(talk) {
					b.Fatalf("hit of %d tokens, want %d", h.length, len(talk))
				}
			}
		})
	}
}

// longSnapshot is a snapshot that says it was taken after n tokens.
type longSnapshot struct {
	backend.Snapshot
	n int
}

func (s longSnapshot) Len() int { return s.n }
