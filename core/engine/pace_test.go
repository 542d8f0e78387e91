package engine

import (
	"testing"
	"time"

	"calla/core/backend"
	"calla/core/backend/backendtest"
)

func TestPace(t *testing.T) {
	const ms = time.Millisecond
	type call struct {
		rows int
		took time.Duration
	}
	for _, tt := range []struct {
		name   string
		budget time.Duration
		calls  []call
		want   int
	}{
		{"any time: the whole chunk", 0, []call{{2048, time.Hour}}, 2048},
		{"speed unknown: a small one", 500 * ms, nil, 256},
		{"fast: twice as many", 500 * ms, []call{{256, 10 * ms}}, 512},
		{"fast for long: the whole chunk", 500 * ms, []call{{256, 10 * ms}, {512, 20 * ms}, {1024, 40 * ms}, {2048, 80 * ms}}, 2048},
		{"as many as fit, on the grid", 500 * ms, []call{{256, 400 * ms}}, 320},
		{"just fits: as it was", 500 * ms, []call{{256, 500 * ms}}, 256},
		{"too long: fewer at once", 500 * ms, []call{{256, time.Second}}, 128},
		{"far too long: never less than a sub-chunk", 500 * ms, []call{{256, time.Hour}}, 64},
		{"slower later, as the context grows", 500 * ms, []call{{256, 100 * ms}, {512, 600 * ms}}, 384},
		{"short calls say nothing of long ones", 500 * ms, []call{{256, 100 * ms}, {30, 90 * ms}, {64, 120 * ms}}, 512},
		{"a short call that is too long", 500 * ms, []call{{256, 100 * ms}, {100, time.Second}}, 64},
		{"and up again", 500 * ms, []call{{256, time.Hour}, {64, 10 * ms}, {128, 20 * ms}}, 256},
		{"a clock that stands", 500 * ms, []call{{256, 0}}, 512},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPace(2048, tt.budget)
			for _, c := range tt.calls {
				p.took(c.rows, c.took)
				if p.rows < backend.SubChunk || p.rows > 2048 || p.rows%backend.SubChunk != 0 {
					t.Fatalf("after a call of %d rows in %v: %d rows, want a multiple of %d up to 2048", c.rows, c.took, p.rows, backend.SubChunk)
				}
			}
			if p.rows != tt.want {
				t.Errorf("%d rows, want %d", p.rows, tt.want)
			}
		})
	}
}

// A device for which every call is too long gets the smallest ones, and the
// tokens of one that takes any time.
func TestPaceChangesNoToken(t *testing.T) {
	prompt := join(turn(1, 700), turn(2, 30), turn(3, 900), open)
	var most int
	d := &backendtest.Device{Traits: backend.Traits{CallTime: time.Nanosecond}, Step: func(c backend.Call) error {
		if c.Phase == backend.Prefill {
			most = max(most, len(c.Tokens))
		}
		return nil
	}}
	e := start(t, d, testOptions())
	generate(t, e, Request{Prompt: turn(9, 10), MaxTokens: 1})
	most = 0
	sameAsCold(t, e, Request{Prompt: prompt, MaxTokens: 4, Keep: []int{len(turn(1, 700))}})
	if most != backend.SubChunk {
		t.Errorf("a call had %d rows, want at most %d", most, backend.SubChunk)
	}
}
