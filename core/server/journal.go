package server

import (
	"net/http"
	"slices"
	"sync"
	"time"

	"calla/core/completion"
)

// maxErrors is how many recent errors are kept.
const maxErrors = 20

// journal remembers what status shows. It is safe for concurrent use.
type journal struct {
	mu     sync.Mutex
	counts RequestCounts
	last   *LastAnswer
	errors []ErrorSummary // oldest first
}

// ended notes a request that has ended.
func (j *journal) ended(rec *record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.counts.Total++
	if rec.status < http.StatusInternalServerError {
		return
	}
	j.counts.Failed++
	if n := len(j.errors); n > 0 && j.errors[n-1].Code == rec.code {
		j.errors[n-1].At = time.Now()
		j.errors[n-1].Count++
		return
	}
	j.errors = append(j.errors, ErrorSummary{At: time.Now(), Code: rec.code, Message: rec.message, Count: 1})
	if len(j.errors) > maxErrors {
		j.errors = slices.Delete(j.errors, 0, 1)
	}
}

// completed notes a completion that ended well.
func (j *journal) completed(r *completion.Result) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.last = lastAnswer(r)
}

func (j *journal) fill(s *Status) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s.Requests, s.Throughput.Last = j.counts, j.last
	s.Errors = append([]ErrorSummary{}, j.errors...)
	slices.Reverse(s.Errors)
}
