// Package bench measures how fast a model answers: the time to the first token,
// prefill and decode over a range of lengths, how many bytes a token reads and
// what share of the machine's bandwidth that is.
//
// What is promised of a number:
//
//   - it is the median of runs that all did the same work, and its spread stands
//     beside it;
//   - a run whose prompt came from a cache, that shared the engine with another
//     request, that the machine held back or whose tokens came in lumps is not
//     counted, and it is said why;
//   - what could not be measured is missing and named. Nothing is estimated.
//
// Plans, statistics, fits, refusals and reports are pure. What asks an engine, a
// server or the system stands in engine.go, server.go and machine_*.go.
package bench

import (
	"context"
	"time"
)

// Target answers requests so that they can be measured.
type Target interface {
	// Run has a prompt of that many tokens evaluated and tokens generated after
	// it. No two runs begin with the same token or line, so that a cache finds
	// nothing. An error is a request that failed.
	Run(ctx context.Context, prompt, tokens int) (Sample, error)
}

// Sample is what one request did and how long it took.
type Sample struct {
	Prompt    int `json:"prompt_tokens"` // as the target counted them
	Cached    int `json:"cached_tokens"` // of the prompt, not evaluated
	Generated int `json:"generated_tokens"`
	// Others are requests of others that the target had in the same window.
	Others int `json:"others,omitempty"`

	FirstToken time.Duration `json:"first_token_ns"` // from the request to the first token
	Prefill    time.Duration `json:"prefill_ns"`
	// Decode is from the first token to the last: one step less than tokens.
	Decode time.Duration `json:"decode_ns"`
	// Stream is how the answer came over HTTP, nil where it did not.
	Stream *Stream `json:"stream,omitempty"`
}

// prefillRate is in prompt tokens a second.
func (s Sample) prefillRate() float64 { return float64(s.Prompt-s.Cached) / s.Prefill.Seconds() }

// step is the seconds of one decoded token.
func (s Sample) step() float64 { return s.Decode.Seconds() / float64(s.Generated-1) }

// Rejected is a reason for which runs did not count, and how many there were.
type Rejected struct {
	Reason string `json:"reason"`
	Runs   int    `json:"runs"`
}

// reject adds a run to the list.
func reject(list []Rejected, reason string) []Rejected {
	for i := range list {
		if list[i].Reason == reason {
			list[i].Runs++
			return list
		}
	}
	return append(list, Rejected{reason, 1})
}
