package server

import "net/http"

// serverName is how one Calla knows another.
const serverName = "calla"

// healthBody says whether a request would be answered.
type healthBody struct {
	Server   string        `json:"server"` // always serverName
	Version  string        `json:"version"`
	Status   State         `json:"status"`
	Reason   string        `json:"reason,omitempty"`
	Model    string        `json:"model"`
	Progress *progressBody `json:"progress,omitempty"`        // while loading
	LastStep *float64      `json:"last_step_age_s,omitempty"` // while busy or stuck
}

func (s *server) healthOf(e EngineStatus) healthBody {
	h := healthBody{Server: serverName, Version: s.Version, Status: e.State, Reason: e.Reason, Model: s.Model.ID}
	switch e.State {
	case StateLoading:
		h.Progress = &progressBody{string(e.Progress.Stage), e.Progress.Done, e.Progress.Total}
	case StateBusy, StateStuck:
		age := e.LastStep.Seconds()
		h.LastStep = &age
	}
	return h
}

// ready tells whether a request would be answered now.
func (s *server) ready(w http.ResponseWriter, r *http.Request) {
	s.tellHealth(w, State.takesRequests)
}

// live tells whether waiting helps: an engine that is stuck or failed must be
// started again.
func (s *server) live(w http.ResponseWriter, r *http.Request) {
	s.tellHealth(w, func(st State) bool { return st != StateStuck && st != StateFailed })
}

func (s *server) tellHealth(w http.ResponseWriter, well func(State) bool) {
	e := s.Engine()
	status := http.StatusOK
	if !well(e.State) {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, s.healthOf(e))
}
