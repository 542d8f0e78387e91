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

// health tells the truth about the engine.
func (s *server) health(w http.ResponseWriter, r *http.Request) {
	e := s.Engine()
	status := http.StatusOK
	if !e.State.takesRequests() {
		status = http.StatusServiceUnavailable
	}
	writeJSON(w, status, s.healthOf(e))
}
