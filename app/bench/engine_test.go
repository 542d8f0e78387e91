package bench

import (
	"testing"

	"calla/core/engine"
)

func TestEnginePrompts(t *testing.T) {
	e := Engine{ids: []int32{3, 4, 5, 7, 11}}
	first := map[int32]bool{}
	for run := range 5 {
		p := e.prompt(run, 100)
		if len(p) != 100 {
			t.Fatalf("a prompt of %d tokens, want 100", len(p))
		}
		first[p[0]] = true
		for _, token := range p {
			if token != 3 && token != 4 && token != 5 && token != 7 && token != 11 {
				t.Fatalf("token %d is none of those that may be taken", token)
			}
		}
	}
	if len(first) != 5 {
		t.Errorf("%d first tokens in 5 runs, want each its own", len(first))
	}
}

func TestOthers(t *testing.T) {
	status := func(requests int64, queue int, running bool) engine.Status {
		s := engine.Status{Queue: queue, Totals: engine.Totals{Requests: requests}}
		if running {
			s.Running = &engine.Running{}
		}
		return s
	}
	for _, tt := range []struct {
		name          string
		before, after engine.Status
		want          int
	}{
		{"ours alone", status(4, 0, false), status(5, 0, false), 0},
		{"one came and went", status(4, 0, false), status(6, 0, false), 1},
		{"one ran before", status(4, 0, true), status(5, 0, false), 1},
		{"one waits after", status(4, 0, false), status(5, 1, false), 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := others(tt.before, tt.after); got != tt.want {
				t.Errorf("others = %d, want %d", got, tt.want)
			}
		})
	}
}
