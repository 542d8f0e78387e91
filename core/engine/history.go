package engine

import (
	"slices"
	"time"
)

// Work is what one stage did in some time.
type Work struct {
	Tokens int
	Time   time.Duration // spent on them
}

func (w *Work) add(tokens int, d time.Duration) {
	w.Tokens += tokens
	w.Time += d
}

// Minute is the work of one minute of the clock, for generations: tokens of
// prompts that were evaluated (not those from the cache, nor what was
// prefilled ahead), and tokens that were chosen after a generation's first,
// which comes with the end of the prefill. A generation counts as it goes,
// however it ends. A call that runs over the end of a minute counts in the
// minute in which it ends.
type Minute struct {
	Start           time.Time
	Prefill, Decode Work
}

// historyMinutes is how many minutes are kept, the one that runs among them.
const historyMinutes = 60

// history has the minutes of the last hour, each at the place of its number.
// The clock may be set: what then lies in the future is not told.
type history [historyMinutes]struct {
	number int64 // of the minute, since 1970
	Minute
}

// at returns the minute that runs.
func (h *history) at(now time.Time) *Minute {
	number := now.Unix() / 60
	slot := &h[number%historyMinutes]
	if slot.number != number {
		slot.number, slot.Minute = number, Minute{Start: time.Unix(number*60, 0)}
	}
	return &slot.Minute
}

// hour returns the minutes of the last hour in which there was work, oldest
// first.
func (h *history) hour(now time.Time) []Minute {
	last := now.Unix() / 60
	var out []Minute
	for number := last - historyMinutes + 1; number <= last; number++ {
		if slot := &h[number%historyMinutes]; slot.number == number && slot.Minute != (Minute{Start: slot.Start}) {
			out = append(out, slot.Minute)
		}
	}
	return slices.Clip(out)
}
