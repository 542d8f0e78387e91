package download

import (
	"testing"
	"time"
)

// TestMeter lets a transfer of 1000 bytes a second run under clocks that jump.
func TestMeter(t *testing.T) {
	const total = 100_000
	type tick struct {
		clock time.Duration // how far the clock went
		bytes int64
	}
	steadily := func(n int) []tick {
		var out []tick
		for range n {
			out = append(out, tick{time.Second, 1000})
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		ticks []tick
		rate  float64
		left  time.Duration
	}{
		{"nothing yet", nil, 0, 0},
		{"steadily", steadily(5), 1000, 95 * time.Second},
		{"over the last seconds only", append([]tick{{time.Second, 50_000}}, steadily(20)...), 1000, 30 * time.Second},
		{"it stands still", append(steadily(5), tick{5 * time.Second, 0}, tick{5 * time.Second, 0}, tick{5 * time.Second, 0}), 0, 0},
		{"the clock goes back years", append(steadily(5), tick{-50 * 365 * 24 * time.Hour, 1000}), 0, 0},
		{"and it goes on", append(append(steadily(5), tick{-50 * 365 * 24 * time.Hour, 1000}), steadily(4)...), 1000, 90 * time.Second},
		{"the clock jumps ahead years", append(steadily(5), tick{50 * 365 * 24 * time.Hour, 1000}), 0, 0},
		{"it stands and moves", append(append(steadily(5), tick{time.Hour, 0}), steadily(5)...), 1000, 90 * time.Second},
		{"two ticks at one time", append(steadily(5), tick{0, 0}), 1000, 95 * time.Second},
		{"so slowly that no end is in sight", []tick{{9 * time.Second, 0}, {time.Second, 0}, {0, 1}, {9 * time.Second, 0}}, 0.1, 0},
		{"bytes that were wrong are taken back", append(steadily(5), tick{time.Second, -5000}), 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
			var last Event
			m := &meter{now: func() time.Time { return now }, paused: func() bool { return false }, tell: func(e Event) { last = e }}
			m.begin(StageFetch, 0, total)
			for _, x := range tt.ticks {
				now = now.Add(x.clock)
				m.add(x.bytes)
				m.report("")
				if last.Rate < 0 || last.Left < 0 {
					t.Fatalf("rate %v, left %v", last.Rate, last.Left)
				}
			}
			if last.Rate != tt.rate || last.Left != tt.left {
				t.Errorf("rate %v, left %v, want %v, %v", last.Rate, last.Left, tt.rate, tt.left)
			}
		})
	}
}
