package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"calla/core/completion"
)

// metrics are the server's numbers for Prometheus. Labels are routes of the
// table and status codes: never what a client chose.
type metrics struct {
	handler    http.Handler
	requests   *prometheus.CounterVec
	duration   *prometheus.HistogramVec
	running    prometheus.Gauge
	firstToken prometheus.Histogram
	tokens     *prometheus.CounterVec
	seconds    *prometheus.CounterVec
}

// Buckets from a short answer to a very long one, in seconds.
var secondBuckets = prometheus.ExponentialBuckets(0.01, 2, 18)

func newMetrics(engine func() EngineStatus) *metrics {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "calla_requests_total", Help: "Requests that have ended, by route and status; status 499 is a client that went away.",
		}, []string{"route", "status"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "calla_request_duration_seconds", Help: "Time from headers to the end of the answer.", Buckets: secondBuckets,
		}, []string{"route"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "calla_requests_in_flight", Help: "Requests that have not ended.",
		}),
		firstToken: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "calla_time_to_first_token_seconds", Help: "Time from admission to the first token's text.", Buckets: secondBuckets,
		}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "calla_tokens_total", Help: "Tokens of completions that ended well: prompt, cached (of the prompt), completion and reasoning (of the completion).",
		}, []string{"kind"}),
		seconds: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "calla_engine_seconds_total", Help: "Time that completions spent in each stage.",
		}, []string{"stage"}),
	}
	registry := prometheus.NewRegistry()
	registry.MustRegister(
		m.requests, m.duration, m.running, m.firstToken, m.tokens, m.seconds, engineCollector(engine),
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	m.handler = promhttp.HandlerFor(registry, promhttp.HandlerOpts{})
	return m
}

// ended counts a request.
func (m *metrics) ended(rec *record, took time.Duration) {
	route := rec.route
	if route == "" {
		route = "none"
	}
	m.requests.WithLabelValues(route, strconv.Itoa(rec.status)).Inc()
	m.duration.WithLabelValues(route).Observe(took.Seconds())
}

// completed counts a completion. The prompt of several choices counts for each:
// the engine has it each time.
func (m *metrics) completed(r *completion.Result) {
	for kind, n := range map[string]int{
		"prompt": r.PromptTokens, "cached": r.CachedTokens, "completion": r.CompletionTokens, "reasoning": r.ReasoningTokens,
	} {
		m.tokens.WithLabelValues(kind).Add(float64(n))
	}
	for stage, d := range map[string]time.Duration{
		"queue": r.Timing.Queue, "load": r.Timing.Load, "prefill": r.Timing.Prefill, "decode": r.Timing.Decode,
	} {
		m.seconds.WithLabelValues(stage).Add(max(d, 0).Seconds())
	}
}

// engineCollector asks the engine at each scrape, so that no number is older
// than that.
type engineCollector func() EngineStatus

var (
	descState   = prometheus.NewDesc("calla_engine_state", "1 for the state that the engine is in.", []string{"state"}, nil)
	descQueue   = prometheus.NewDesc("calla_queue_requests", "Requests in the engine: running, waiting, and the capacity of the queue.", []string{"kind"}, nil)
	descMemory  = prometheus.NewDesc("calla_memory_bytes", "The engine's memory: used, needed at most, and the limit.", []string{"kind"}, nil)
	descCache   = prometheus.NewDesc("calla_prefix_cache_bytes", "Bytes in the prefix cache.", nil, nil)
	descEntries = prometheus.NewDesc("calla_prefix_cache_entries", "Entries of the prefix cache.", nil, nil)
	descRate    = prometheus.NewDesc("calla_tokens_per_second", "Tokens a second of the running request.", []string{"stage"}, nil)
)

// Describe implements prometheus.Collector.
func (engineCollector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{descState, descQueue, descMemory, descCache, descEntries, descRate} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c engineCollector) Collect(out chan<- prometheus.Metric) {
	e := c()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	for _, s := range states {
		is := 0.0
		if s == e.State {
			is = 1
		}
		gauge(descState, is, string(s))
	}
	gauge(descQueue, float64(e.Running), "running")
	gauge(descQueue, float64(e.Waiting), "waiting")
	gauge(descQueue, float64(e.Capacity), "capacity")
	gauge(descMemory, float64(e.MemoryUsed), "used")
	gauge(descMemory, float64(e.MemoryNeeded), "needed")
	gauge(descMemory, float64(e.MemoryLimit), "limit")
	gauge(descCache, float64(e.CacheBytes))
	gauge(descEntries, float64(e.CacheEntries))
	gauge(descRate, e.PrefillRate, "prefill")
	gauge(descRate, e.DecodeRate, "decode")
}
