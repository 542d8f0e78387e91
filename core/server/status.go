package server

import (
	"net/http"
	"time"

	"calla/core/completion"
	"calla/core/engine"
)

// State is what the engine is doing.
type State string

// The states of an engine. Ready, busy and unloaded ones take requests.
const (
	StateLoading  State = "loading"  // weights are being read
	StateReady    State = "ready"    // nothing to do
	StateBusy     State = "busy"     // a request runs
	StateUnloaded State = "unloaded" // idle, weights freed; the next request loads them
	StateStuck    State = "stuck"    // a step takes far too long
	StateStopping State = "stopping"
	StateFailed   State = "failed"
)

var states = []State{StateLoading, StateReady, StateBusy, StateUnloaded, StateStuck, StateStopping, StateFailed}

func (s State) takesRequests() bool {
	return s == StateReady || s == StateBusy || s == StateUnloaded
}

// EngineStatus is the engine's own word on how it is.
type EngineStatus struct {
	State    State
	Reason   string          // of a state that takes no requests, in words
	Progress engine.Progress // while loading
	LastStep time.Duration   // age of the newest step, while busy or stuck

	Running, Waiting, Capacity int // requests; Capacity bounds the waiting

	MemoryUsed, MemoryNeeded, MemoryLimit int64 // bytes

	CacheEntries int
	CacheBytes   int64

	// Tokens a second at this moment.
	PrefillRate, DecodeRate float64
	Hour                    []engine.Minute

	Thermal  string // nominal, fair, serious or critical; empty where unknown
	LowPower bool   // the machine saves energy at the cost of speed
}

// Status is the body of GET /v1/status: all that a menu or a page shows. Times
// are in RFC 3339, durations in seconds.
type Status struct {
	Object    string    `json:"object"` // "status"
	Server    string    `json:"server"` // "calla"
	Version   string    `json:"version"`
	Instance  string    `json:"instance,omitempty"` // who started it knows it by this
	StartedAt time.Time `json:"started_at"`
	Uptime    float64   `json:"uptime_s"`

	State    State         `json:"state"`
	Reason   string        `json:"reason,omitempty"`          // of loading, stuck, stopping and failed
	Progress *progressBody `json:"progress,omitempty"`        // while loading, in bytes
	LastStep *float64      `json:"last_step_age_s,omitempty"` // while busy or stuck

	Model      modelBody      `json:"model"`
	Receipt    Receipt        `json:"receipt"` // of the model
	KeyNeeded  bool           `json:"key_needed"`
	Memory     MemoryStatus   `json:"memory"`
	Throughput Throughput     `json:"throughput"`
	Queue      QueueStatus    `json:"queue"`
	Cache      CacheStatus    `json:"prefix_cache"`
	Requests   RequestCounts  `json:"requests"`
	Errors     []ErrorSummary `json:"recent_errors"` // newest first
}

// MemoryStatus is the engine's memory in bytes.
type MemoryStatus struct {
	Used   int64 `json:"used_bytes"`
	Needed int64 `json:"needed_bytes"` // at most, with full contexts
	Limit  int64 `json:"limit_bytes"`
}

// Throughput is what the engine does, and did.
type Throughput struct {
	Now  Rates       `json:"now"`
	Last *LastAnswer `json:"last"` // null before the first
	Hour Hour        `json:"hour"`
	// Thermal and LowPower say what may slow the machine down.
	Thermal  string `json:"thermal,omitempty"`
	LowPower bool   `json:"low_power"`
}

// Rates of the two stages of a completion, in tokens a second.
type Rates struct {
	Prefill float64 `json:"prefill_tokens_per_s"`
	Decode  float64 `json:"decode_tokens_per_s"`
}

// LastAnswer is the newest completion that ended well.
type LastAnswer struct {
	At time.Time `json:"at"`
	Rates
	PromptTokens     int     `json:"prompt_tokens"`
	CachedTokens     int     `json:"cached_tokens"`
	CompletionTokens int     `json:"completion_tokens"`
	FinishReason     string  `json:"finish_reason"`
	Queue            float64 `json:"queue_s"`
	Prefill          float64 `json:"prefill_s"`
	Decode           float64 `json:"decode_s"`
}

func lastAnswer(r *completion.Result) *LastAnswer {
	return &LastAnswer{
		At: time.Now(),
		Rates: Rates{
			Prefill: rate(r.PromptTokens-r.CachedTokens, r.Timing.Prefill),
			// The first token comes with the end of the prefill.
			Decode: rate(r.CompletionTokens-1, r.Timing.Decode),
		},
		PromptTokens: r.PromptTokens, CachedTokens: r.CachedTokens, CompletionTokens: r.CompletionTokens,
		FinishReason: string(r.Reason),
		Queue:        r.Timing.Queue.Seconds(), Prefill: r.Timing.Prefill.Seconds(), Decode: r.Timing.Decode.Seconds(),
	}
}

func rate(tokens int, d time.Duration) float64 {
	if tokens <= 0 || d <= 0 {
		return 0
	}
	return float64(tokens) / d.Seconds()
}

// QueueStatus counts requests in the engine.
type QueueStatus struct {
	Running  int `json:"running"`
	Waiting  int `json:"waiting"`
	Capacity int `json:"capacity"` // of the waiting
}

// CacheStatus is the prefix cache.
type CacheStatus struct {
	Entries int   `json:"entries"`
	Bytes   int64 `json:"bytes"`
}

// RequestCounts counts HTTP requests since the start, those of operators too.
type RequestCounts struct {
	Total  int64 `json:"total"`
	Failed int64 `json:"failed"` // with 500 and above
}

// ErrorSummary is a fault of the server's, or several of one kind in a row.
type ErrorSummary struct {
	At      time.Time `json:"at"` // of the newest
	Code    string    `json:"code"`
	Message string    `json:"message"`
	Count   int       `json:"count"`
}

func (s *server) status(w http.ResponseWriter, r *http.Request) {
	e := s.Engine()
	h := s.healthOf(e)
	out := Status{
		Object: "status", Server: serverName, Version: s.Version, Instance: s.Instance,
		StartedAt: s.started, Uptime: time.Since(s.started).Seconds(),
		State: e.State, Reason: e.Reason, Progress: h.Progress, LastStep: h.LastStep,
		Model: s.Model.body(), Receipt: s.Model.Receipt, KeyNeeded: s.Key != "",
		Memory: MemoryStatus{e.MemoryUsed, e.MemoryNeeded, e.MemoryLimit},
		Queue:  QueueStatus{e.Running, e.Waiting, e.Capacity},
		Cache:  CacheStatus{e.CacheEntries, e.CacheBytes},
	}
	out.Throughput.Thermal, out.Throughput.LowPower = e.Thermal, e.LowPower
	out.Throughput.Now, out.Throughput.Hour = Rates{e.PrefillRate, e.DecodeRate}, hourOf(e.Hour)
	s.journal.fill(&out)
	writeJSON(w, http.StatusOK, out)
}
