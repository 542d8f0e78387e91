package download

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

func newTestPlan(workers int, files ...int) *plan {
	p := &plan{workers: workers}
	for _, n := range files {
		p.files = append(p.files, newFilePlan(n))
	}
	return p
}

// run is a claim as a test writes it: file, first piece, end.
type run struct{ file, first, end int }

func (c *claim) run() run {
	if c == nil {
		return run{-1, 0, 0}
	}
	return run{c.file, c.next, c.end}
}

var nothing = run{-1, 0, 0}

func TestPlanClaims(t *testing.T) {
	for _, tt := range []struct {
		name    string
		workers int
		files   []int
		prepare func(*plan)
		want    []run // of the workers, one after another
	}{
		{"a worker a file, long runs", 2, []int{100, 100}, nil, []run{{0, 0, 16}, {1, 0, 16}}},
		{"a second worker goes on behind the first", 3, []int{100, 100}, nil, []run{{0, 0, 16}, {1, 0, 16}, {0, 16, 32}}},
		{"short runs near the end", 4, []int{16}, nil, []run{{0, 0, 2}, {0, 2, 3}, {0, 3, 4}, {0, 4, 5}}},
		{"what is there is left out", 1, []int{6}, func(p *plan) { p.files[0].have[1] = true }, []run{{0, 0, 1}, {0, 2, 4}}},
		{"nothing left", 1, []int{1}, func(p *plan) { p.files[0].have[0] = true }, []run{nothing}},
		{"a single piece is not stolen", 2, []int{1}, nil, []run{{0, 0, 1}, nothing}},
		{"half of a run is stolen", 1, []int{8}, func(p *plan) {
			for p.files[0].missing() > 0 {
				p.claim()
			}
		}, []run{{0, 2, 4}}},
		{"a file that comes whole has one worker", 2, []int{9}, func(p *plan) { p.files[0].whole = true }, []run{{0, 0, 9}, nothing}},
		{"which takes all that is missing", 2, []int{9}, func(p *plan) {
			p.files[0].whole = true
			p.files[0].have[0], p.files[0].have[4] = true, true
		}, []run{{0, 1, 9}, nothing}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newTestPlan(tt.workers, tt.files...)
			if tt.prepare != nil {
				tt.prepare(p)
			}
			for i, want := range tt.want {
				if got := p.claim().run(); got != want {
					t.Errorf("claim %d = %v, want %v", i, got, want)
				}
			}
		})
	}
}

func TestPlanComesWhole(t *testing.T) {
	p := newTestPlan(8, 64)
	first, second := p.claim(), p.claim()
	if p.comesWhole(second, false) {
		t.Error("a second connection goes on with a file that comes whole")
	}
	if !p.comesWhole(first, true) || first.end != 64 {
		t.Errorf("the first connection has pieces to %d, want all 64", first.end)
	}
	if c := p.claim(); c != nil {
		t.Errorf("a third worker got %v of a file that comes whole", c.run())
	}
	n := 1
	for p.got(first) {
		n++
	}
	if n != 64 || !p.complete() {
		t.Errorf("the first connection got %d pieces, want 64", n)
	}
}

// TestPlanWorks lets workers of all speeds work in a random order: every piece
// is got, each once, and nobody waits while there is a piece to take over.
func TestPlanWorks(t *testing.T) {
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 0))
			workers := 1 + r.IntN(8)
			p := newTestPlan(workers, 1+r.IntN(3), 1+r.IntN(60), 1+r.IntN(60))
			busy := make([]*claim, workers)
			got := map[[2]int]int{}
			for steps := 0; !p.complete(); steps++ {
				if steps > 100_000 {
					t.Fatal("the plan does not come to an end")
				}
				w := r.IntN(workers)
				c := busy[w]
				switch {
				case c == nil:
					busy[w] = p.claim()
				case r.IntN(20) == 0:
					p.release(c)
					busy[w] = nil
				case r.IntN(50) == 0 && !p.comesWhole(c, c.next == 0):
					busy[w] = nil
				case c.next < c.end:
					got[[2]int{c.file, c.next}]++
					if !p.got(c) {
						busy[w] = nil
					}
				}
			}
			for piece, n := range got {
				if n != 1 {
					t.Errorf("piece %v was got %d times", piece, n)
				}
			}
		})
	}
}
