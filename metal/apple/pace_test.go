package apple

import (
	"testing"
	"time"

	"calla/metal"
)

// TestPace cuts lists in command buffers that take about as long as they may.
func TestPace(t *testing.T) {
	list := func(grids ...uint32) *metal.List {
		l := &metal.List{}
		for i, g := range grids {
			l.Dispatches = append(l.Dispatches, metal.Dispatch{Grid: [3]uint32{g, 1, 1}, Barrier: i%4 != 3})
		}
		return l
	}
	same := func(n int, g uint32) []uint32 {
		out := make([]uint32, n)
		for i := range out {
			out[i] = g
		}
		return out
	}
	for _, tt := range []struct {
		name   string
		rate   float64 // 0: none measured
		list   *metal.List
		want   int     // command buffers
		longer float64 // than its share, most of them
	}{
		{"a decoded token before anything was measured", 0, list(same(264, 200)...), 1, 1},
		{"a prompt's call before anything was measured", 0, list(same(400, 5000)...), 16, 1.34},
		{"a short call before anything was measured", 0, list(same(400, 2500)...), 10, 1},
		{"a prompt's call on a fast GPU", 1e-8, list(same(400, 5000)...), 1, 1},
		{"one dispatch longer than its share", 1e-3, list(1, 500, 1), 3, 5},
		{"a call far too long", 1, list(same(1000, 1)...), 16, 667},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := pace{tt.rate}
			spans, next := p.cut(tt.list), 0
			for _, s := range spans {
				if s.first != next || s.end <= s.first || !s.command {
					t.Fatalf("span %+v behind dispatch %d", s, next)
				}
				if s.first > 0 && !tt.list.Dispatches[s.first].Barrier {
					t.Errorf("cut before dispatch %d, which overlaps the one before", s.first)
				}
				total := 0.0
				for i := s.first; i < s.end; i++ {
					total += threadgroups(&tt.list.Dispatches[i]) * p.estimate()
				}
				if total > 1.01*tt.longer*share.Seconds() {
					t.Errorf("span %+v takes %v", s, time.Duration(total*float64(time.Second)))
				}
				next = s.end
			}
			if next != len(tt.list.Dispatches) {
				t.Errorf("%d dispatches of %d", next, len(tt.list.Dispatches))
			}
			if len(spans) != tt.want || len(spans) > mostCommands {
				t.Errorf("%d command buffers, want %d", len(spans), tt.want)
			}
		})
	}
}

// TestLearn follows what was measured: up at once, down by and by.
func TestLearn(t *testing.T) {
	var p pace
	for _, tt := range []struct{ threadgroups, seconds, want float64 }{
		{0, 1, 1e-6},
		{1000, 0, 1e-6},
		{1000, 0.01, 1e-5},
		{1000, 0.001, 5e-6},
		{1000, 0.001, 2.5e-6},
		{1000, 0.001, 1.25e-6},
		{1000, 0.001, 1e-6},
	} {
		p.learn(tt.threadgroups, tt.seconds)
		if d := p.estimate() - tt.want; d > 1e-9 || d < -1e-9 {
			t.Errorf("after %v threadgroups in %v s: %v s each, want %v", tt.threadgroups, tt.seconds, p.estimate(), tt.want)
		}
	}
}
