package engine

import (
	"math/rand/v2"
	"slices"
	"testing"

	"calla/core/backend"
)

func TestSegmentsStartAfterEachEndOfTurn(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tokens []int32
		want   []int
	}{
		{"no turn", []int32{9, 9, 9}, []int{0}},
		{"newline belongs to the turn", []int32{9, imEnd, newline, 9}, []int{0, 3}},
		{"turn without a newline", []int32{9, imEnd, 9}, []int{0, 2}},
		{"two newlines", []int32{imEnd, newline, newline}, []int{0, 2}},
		{"turns side by side", []int32{imEnd, imEnd, newline}, []int{0, 1, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := newGrid(tt.tokens, Turn{imEnd, newline}).starts; !slices.Equal(got, tt.want) {
				t.Errorf("starts of %v = %v, want %v", tt.tokens, got, tt.want)
			}
		})
	}
}

// Every cut of every random prompt lies on its grid, respects the chunk and the
// stops, and loses no token.
func TestCallsLieOnTheGrid(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		n := 1 + rng.IntN(3000)
		tokens := make([]int32, n)
		for i := range tokens {
			tokens[i] = words
			if rng.IntN(1+rng.IntN(200)) == 0 {
				tokens[i] = imEnd
			}
		}
		g := newGrid(tokens, Turn{imEnd, newline})
		from := g.edgeBefore(rng.IntN(n))
		chunk := backend.SubChunk * (1 + rng.IntN(40))
		stops := landmarks(g, from, n, []int{rng.IntN(n), rng.IntN(n)})
		ends := g.callEnds(from, n, chunk, stops)
		p := from
		for i, end := range ends {
			if end <= p || end-p > chunk {
				t.Fatalf("call %d of %v is [%d, %d), chunk %d", i, ends, p, end, chunk)
			}
			if !g.isEdge(p) {
				t.Fatalf("call %d begins off the grid at %d", i, p)
			}
			if c := g.covering(p, end); c[0] > p || len(c) > 1 && c[1] <= p {
				t.Fatalf("call [%d, %d) is given segments %v", p, end, c)
			}
			p = end
		}
		if p != n {
			t.Fatalf("calls end at %d of %d tokens", p, n)
		}
		for _, s := range stops {
			if !slices.Contains(ends, s) {
				t.Fatalf("no call ends at the stop %d: %v", s, ends)
			}
		}
	}
}

func TestSurvivors(t *testing.T) {
	for _, tt := range []struct {
		name     string
		at, keep []int
		limit    int
		want     []int
	}{
		{"all fit", []int{1, 2, 3}, nil, 3, []int{1, 2, 3}},
		{"the oldest goes", []int{1, 2, 3, 4}, nil, 3, []int{2, 3, 4}},
		{"landmarks stay", []int{1, 2, 3, 4, 5}, []int{1, 3}, 3, []int{1, 3, 5}},
		{"the newest comes before landmarks", []int{1, 2, 3, 4, 5}, []int{1, 2, 3}, 2, []int{1, 5}},
		{"landmarks without a snapshot take no room", []int{1, 2, 3, 4}, []int{9, 10}, 2, []int{3, 4}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := survivors(tt.at, tt.keep, tt.limit); !slices.Equal(got, tt.want) {
				t.Errorf("survivors(%v, %v, %d) = %v, want %v", tt.at, tt.keep, tt.limit, got, tt.want)
			}
		})
	}
}
