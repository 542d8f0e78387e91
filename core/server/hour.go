package server

import (
	"time"

	"calla/core/engine"
)

// Hour is the work of the last sixty minutes of the server's clock, the one
// that runs among them. It begins with the server.
//
// Prefill is tokens of prompts that were evaluated: what came from the cache
// does not count, nor what the engine reads ahead of a request. Decode is
// tokens that were generated, each completion without its first, which comes
// with the end of the prefill. Tokens count as they come, also of completions
// that are stopped or fail later; tokens by seconds is the rate while the
// engine was at it. The rest of the minute is waiting.
type Hour struct {
	At      time.Time `json:"at"`      // now
	Minutes []Minute  `json:"minutes"` // oldest first; those without work are left out
}

// Minute is the work of one minute.
type Minute struct {
	Start   time.Time `json:"start"`
	Prefill Work      `json:"prefill"`
	Decode  Work      `json:"decode"`
}

// Work is what one stage did in some time.
type Work struct {
	Tokens  int     `json:"tokens"`
	Seconds float64 `json:"seconds"`
}

func hourOf(minutes []engine.Minute) Hour {
	h := Hour{At: time.Now().UTC().Truncate(time.Millisecond), Minutes: []Minute{}}
	for _, m := range minutes {
		h.Minutes = append(h.Minutes, Minute{m.Start.UTC(), workOf(m.Prefill), workOf(m.Decode)})
	}
	return h
}

func workOf(w engine.Work) Work { return Work{w.Tokens, w.Time.Round(time.Microsecond).Seconds()} }
