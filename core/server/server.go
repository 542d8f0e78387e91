package server

import (
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/gorilla/mux"
)

// server is the handler that New returns.
type server struct {
	Options
	guard   guard
	routes  []route
	started time.Time
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
	s := &server{Options: o, guard: newGuard(o), started: time.Now()}
	s.routes = s.table()
	return s.recorded(s.guarded(s.router()))
}

func (s *server) table() []route {
	return []route{
		{"POST", "/v1/chat/completions", "a chat completion, OpenAI's way", s.chatCompletions},
		{"GET", "/v1/models", "the model that is served", s.listModels},
		{"GET", "/v1/models/{id:.+}", "one model by its id", s.getModel},
		{"GET", "/health", "what the engine is doing; 503 where it cannot answer", s.health},
	}
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
