package server

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"calla/core/server/page"
)

// server is the handler that New returns.
type server struct {
	Options
	guard   guard
	routes  []route
	started time.Time
	metrics *metrics
	journal journal
	intake  *intake
}

// route is one thing that the server does. The table of them makes the router,
// the answers to wrong paths and methods, and the README's list.
type route struct {
	method  string
	path    string // as the router has it
	summary string
	serve   func(http.ResponseWriter, *http.Request)
}

// New returns the handler of all endpoints, guarded.
func New(o Options) http.Handler {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &server{Options: o, guard: newGuard(o), started: time.Now(), metrics: newMetrics(o.Engine), intake: newIntake(maxReceived, maxAtWork)}
	s.routes = s.table()
	return s.recorded(s.guarded(s.held(s.router())))
}

func (s *server) table() []route {
	return []route{
		{"POST", "/v1/chat/completions", "OpenAI's chat completions, whole and streamed", s.chatCompletions},
		{"POST", "/v1/completions", "OpenAI's completions of text or tokens, whole and streamed", s.completions},
		{"POST", "/v1/responses", "OpenAI's responses, stateless, whole and streamed", s.responses},
		{"POST", "/v1/messages", "Anthropic's messages, whole and streamed", s.messages},
		{"POST", "/v1/messages/count_tokens", "the tokens of a prompt of Anthropic's messages", s.countTokens},
		{"POST", "/tokenize", "the tokens of a text or of a conversation's prompt", s.tokenize},
		{"POST", "/detokenize", "the text of tokens", s.detokenize},
		{"GET", "/v1/models", "the model that is served", s.listModels},
		{"GET", "/v1/models/{id:.+}", "one model by its id or an alias", s.getModel},
		{"GET", "/v1/capabilities", "these tables as JSON, defaults and limits", s.capabilities},
		{"GET", "/v1/status", "state, model and its receipt, memory, throughput now and by minutes of the last hour, queue and recent errors", s.status},
		{"GET", "/health", "whether a request would be answered, and what the engine does; else 503", s.ready},
		{"GET", "/health/ready", "as /health", s.ready},
		{"GET", "/health/live", "503 where only a new start helps", s.live},
		{"GET", "/metrics", "numbers for Prometheus", s.prometheus},
		{"GET", "/", "the page for people: chat and status", s.showPage},
		{"GET", page.Prefix + "{file:.+}", "what that page is made of", s.showPage},
	}
}

func (s *server) prometheus(w http.ResponseWriter, r *http.Request) {
	s.metrics.handler.ServeHTTP(w, r)
}

func (s *server) router() http.Handler {
	// Paths are taken as they are: a redirect to a cleaned one would lose the
	// body of a POST.
	m := mux.NewRouter().SkipClean(true)
	for _, r := range s.routes {
		m.HandleFunc(r.path, func(w http.ResponseWriter, req *http.Request) {
			recordOf(req).route = r.path
			r.serve(w, req)
		}).Methods(r.methods()...)
	}
	m.NotFoundHandler = http.HandlerFunc(s.notFound)
	m.MethodNotAllowedHandler = http.HandlerFunc(s.wrongMethod)
	return m
}

func (r route) methods() []string {
	if r.method == http.MethodGet {
		return []string{http.MethodGet, http.MethodHead}
	}
	return []string{r.method}
}

// plainPath is the route's path for people to read.
func (r route) plainPath() string { return strings.Replace(r.path, ":.+}", "}", 1) }

func (s *server) notFound(w http.ResponseWriter, r *http.Request) {
	var have []string
	for _, r := range s.routes {
		have = append(have, r.method+" "+r.plainPath())
	}
	writeError(w, r, &apiError{
		status: http.StatusNotFound, kind: kindNotFound, code: "unknown_url",
		message: "there is nothing at this path; there is " + strings.Join(have, ", "),
	})
}

func (s *server) wrongMethod(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, route := range s.routes {
		probe := mux.NewRouter().SkipClean(true)
		probe.Path(route.path)
		if probe.Match(r, &mux.RouteMatch{}) {
			allowed = append(allowed, route.methods()...)
		}
	}
	allow := strings.Join(allowed, ", ")
	writeError(w, r, &apiError{
		status: http.StatusMethodNotAllowed, kind: kindInvalid, code: "method_not_allowed",
		message: "this path takes " + allow, allow: allow,
	})
}
