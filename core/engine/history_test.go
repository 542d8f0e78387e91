package engine

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"calla/core/backend/backendtest"
)

func TestHistory(t *testing.T) {
	start := time.Date(2026, 5, 4, 13, 7, 30, 0, time.UTC)
	after := func(d time.Duration) time.Time { return start.Add(d) }
	minute := func(d time.Duration, prefill, decode int) Minute {
		return Minute{after(d).Truncate(time.Minute), Work{prefill, time.Second}, Work{decode, time.Second}}
	}
	for _, tt := range []struct {
		name string
		at   []time.Duration // of work: so many tokens as its place in the list, twice as many decoded
		now  time.Duration
		want []Minute
	}{
		{"nothing yet", nil, 0, nil},
		{"this minute", []time.Duration{0}, 29 * time.Second, []Minute{minute(0, 1, 2)}},
		{"an idle minute between two", []time.Duration{0, 2 * time.Minute}, 2 * time.Minute, []Minute{minute(0, 1, 2), minute(2*time.Minute, 2, 4)}},
		{"the last of an hour", []time.Duration{0}, 59 * time.Minute, []Minute{minute(0, 1, 2)}},
		{"an hour ago", []time.Duration{0}, time.Hour, nil},
		{"the same minute an hour later", []time.Duration{0, time.Hour}, time.Hour, []Minute{minute(time.Hour, 2, 4)}},
		{"days later", []time.Duration{0}, 72 * time.Hour, nil},
		{"the clock was set back", []time.Duration{10 * time.Minute, 0}, 0, []Minute{minute(0, 2, 4)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var h history
			for i, d := range tt.at {
				m := h.at(after(d))
				m.Prefill.add(i+1, time.Second)
				m.Decode.add(2*(i+1), time.Second)
			}
			if d := cmp.Diff(tt.want, h.hour(after(tt.now))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestHourCountsWork has what the cache has and a completion's first token not
// count, and what a fault cut short count as far as it came.
func TestHourCountsWork(t *testing.T) {
	d := &backendtest.Device{Next: func([]int32) int32 { return words }}
	e := start(t, d, testOptions())
	hour := func() (prefill, decode Work) {
		t.Helper()
		for _, m := range e.Status().Hour {
			prefill.add(m.Prefill.Tokens, m.Prefill.Time)
			decode.add(m.Decode.Tokens, m.Decode.Time)
		}
		return prefill, decode
	}
	var evaluated, chosen int
	check := func(what string) {
		t.Helper()
		prefill, decode := hour()
		if prefill.Tokens != evaluated || decode.Tokens != chosen || prefill.Time <= 0 || decode.Time <= 0 {
			t.Errorf("%s: the hour has %+v and %+v, want %d and %d tokens, each in some time", what, prefill, decode, evaluated, chosen)
		}
	}
	prompt := join(turn(1, 50), open)
	first := generate(t, e, Request{Prompt: prompt, MaxTokens: 5})
	evaluated, chosen = len(prompt), 4
	check("a generation")

	longer := join(turn(1, 50), turn(2, 20), open)
	second := generate(t, e, Request{Prompt: longer, MaxTokens: 3})
	if first.CachedTokens != 0 || second.CachedTokens == 0 {
		t.Fatalf("cached %d and %d tokens, want none and some", first.CachedTokens, second.CachedTokens)
	}
	evaluated, chosen = evaluated+len(longer)-second.CachedTokens, chosen+2
	check("one with a cached beginning")

	n := 0
	d.Next = func([]int32) int32 {
		if n++; n == 3 {
			panic("the third step")
		}
		return words
	}
	third := join(turn(3, 30), open)
	if _, err := collect(submit(t, e, t.Context(), third, 9)); err == nil {
		t.Fatal("no error where the device panicked")
	}
	evaluated, chosen = evaluated+len(third), chosen+1
	check("one that a fault cut short")
}
