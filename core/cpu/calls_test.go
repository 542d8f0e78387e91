package cpu

import (
	"slices"
	"testing"
)

func TestSubChunks(t *testing.T) {
	for _, tt := range []struct {
		name       string
		segments   []int
		from, rows int
		want       []subChunk
	}{
		{"one row", []int{0}, 0, 1, []subChunk{{0, 1}}},
		{"a whole sub-chunk", []int{0}, 0, 64, []subChunk{{0, 64}}},
		{"one row more", []int{0}, 0, 65, []subChunk{{0, 64}, {64, 65}}},
		{"behind an edge of an old segment", []int{10}, 138, 70, []subChunk{{0, 64}, {64, 70}}},
		{"restart in the middle", []int{0, 70}, 0, 140, []subChunk{{0, 64}, {64, 70}, {70, 134}, {134, 140}}},
		{"the call begins a segment", []int{100, 103}, 100, 5, []subChunk{{0, 3}, {3, 5}}},
		{"every row its own", []int{5, 6, 7}, 5, 3, []subChunk{{0, 1}, {1, 2}, {2, 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := checkSegments(tt.segments, tt.from, tt.rows); err != nil {
				t.Fatal(err)
			}
			if got := subChunks(tt.segments, tt.from, tt.rows); !slices.Equal(got, tt.want) {
				t.Errorf("subChunks(%v, %d, %d) = %v, want %v", tt.segments, tt.from, tt.rows, got, tt.want)
			}
		})
	}
}

func TestAssignment(t *testing.T) {
	for _, tt := range []struct {
		name   string
		chosen []int32
		want   [][]int32 // entries of each expert
	}{
		{"one choice", []int32{2}, [][]int32{{}, {}, {0}, {}}},
		{"all the same", []int32{1, 1, 1}, [][]int32{{}, {0, 1, 2}, {}, {}}},
		{"rows in order", []int32{3, 0, 1, 3, 0, 3}, [][]int32{{1, 4}, {2}, {}, {0, 3, 5}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAssignment(8, len(tt.want))
			a.assign([]int32{0, 1, 2, 3}) // what an earlier call left
			a.assign(tt.chosen)
			for e, want := range tt.want {
				if got := a.of(e); !slices.Equal(got, want) {
					t.Errorf("expert %d has entries %v, want %v", e, got, want)
				}
			}
		})
	}
}
