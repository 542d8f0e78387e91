package server

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"calla/core/completion"
	"calla/core/crash"
)

// record is what is kept of a request for the log: never a path, header, field
// or value that a client chose.
type record struct {
	id     string
	route  string // of the table; "" where none matched
	status int
	code   string // of the error
	// message is the error's, where it is the server's own fault: it says
	// nothing of the request.
	message string
	cause   error
	sent    bool // a stream's headers are out

	prompt, cached, completion int // tokens
	reason                     string
}

func (r *record) fail(e *apiError) {
	r.status, r.code, r.cause = e.status, e.code, e.cause
	if e.status >= http.StatusInternalServerError {
		r.message = e.message
	}
}

// add counts a choice that has ended. The prompt of several choices is one.
func (r *record) add(result *completion.Result) {
	r.prompt, r.cached = result.PromptTokens, result.CachedTokens
	r.completion += result.CompletionTokens
	r.reason = string(result.Reason)
}

type recordKey struct{}

// recordOf returns the request's record. A request that did not come through
// recorded has one that nobody reads.
func recordOf(r *http.Request) *record {
	if rec, ok := r.Context().Value(recordKey{}).(*record); ok {
		return rec
	}
	return &record{}
}

// recorded gives each request an id and a record, logs it, and turns a panic
// into a 500.
func (s *server) recorded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rec := &record{id: newID("req_"), status: http.StatusOK}
		r = r.WithContext(context.WithValue(r.Context(), recordKey{}, rec))
		w.Header().Set("X-Request-Id", rec.id)
		w.Header().Set("Request-Id", rec.id) // Anthropic's name of it
		w.Header().Set("X-Content-Type-Options", "nosniff")
		deadlines(w, r)
		begin := time.Now()
		s.metrics.running.Inc()
		defer func() { s.ended(r, rec, time.Since(begin)) }()
		defer func() {
			if p := recover(); p != nil {
				afterPanic(w, r, p)
			}
		}()
		next.ServeHTTP(w, r)
	})
}

// panicked is the fault of code that panicked just now, with p. What a panic
// says may hold anything, so only where it happened is kept.
func panicked(p any) *apiError {
	return &apiError{
		status: http.StatusInternalServerError, kind: kindServer, code: "internal_error",
		message: "the request failed within the server",
		cause:   fmt.Errorf("server: %w", crash.Of(p)),
	}
}

// afterPanic answers a request whose handler panicked.
func afterPanic(w http.ResponseWriter, r *http.Request, p any) {
	e := panicked(p)
	if recordOf(r).sent {
		recordOf(r).fail(e)
		panic(http.ErrAbortHandler) // all that is left is to break the stream off
	}
	writeError(w, r, e)
}

// ended accounts for a request.
func (s *server) ended(r *http.Request, rec *record, took time.Duration) {
	s.metrics.running.Dec()
	s.metrics.ended(rec, took)
	s.journal.ended(rec)
	s.log(r, rec, took)
}

// polled are the routes that monitors ask for every second. Answers to them say
// nothing that a log should keep for months.
var polled = map[string]bool{"/health": true, "/health/ready": true, "/health/live": true, "/metrics": true, "/v1/status": true}

func (s *server) log(r *http.Request, rec *record, took time.Duration) {
	level := slog.LevelInfo
	switch {
	case rec.status >= 500:
		level = slog.LevelError
	case rec.status < 400 && polled[rec.route]:
		level = slog.LevelDebug
	}
	attrs := []slog.Attr{
		slog.String("id", rec.id),
		slog.String("route", rec.route),
		slog.Int("status", rec.status),
		slog.Duration("took", took),
	}
	if rec.code != "" {
		attrs = append(attrs, slog.String("error", rec.code))
	}
	if rec.cause != nil {
		attrs = append(attrs, slog.Any("cause", rec.cause))
	}
	if rec.reason != "" {
		attrs = append(attrs,
			slog.Int("prompt_tokens", rec.prompt),
			slog.Int("cached_tokens", rec.cached),
			slog.Int("completion_tokens", rec.completion),
			slog.String("finish", rec.reason))
	}
	s.Log.LogAttrs(context.WithoutCancel(r.Context()), level, "request", attrs...)
}

// newID returns an id that no other request, answer or call has.
func newID(prefix string) string { return prefix + rand.Text() }
