package server

import (
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/mux"
)

// is reports as an error where a request asks for another model. Names are
// taken exactly: a name in another case may be another model elsewhere.
func (m Model) is(name *string) *apiError {
	if name != nil && (*name == m.ID || slices.Contains(m.Aliases, *name)) {
		return nil
	}
	return &apiError{
		status: http.StatusNotFound, kind: kindInvalid, code: "model_not_found", param: "model",
		message: "the request names no model that is served here; served is " + m.ID,
	}
}

// modelBody is a model in OpenAI's words and in Anthropic's, whose clients ask
// at the same path.
type modelBody struct {
	ID          string   `json:"id"`
	Object      string   `json:"object"`
	Created     int64    `json:"created"`
	OwnedBy     string   `json:"owned_by"`
	Type        string   `json:"type"`
	DisplayName string   `json:"display_name"`
	CreatedAt   string   `json:"created_at"`
	MaxModelLen int      `json:"max_model_len"` // prompt and completion, in tokens
	Aliases     []string `json:"aliases"`
}

func (m Model) body() modelBody {
	aliases := m.Aliases
	if aliases == nil {
		aliases = []string{}
	}
	return modelBody{
		ID: m.ID, Object: "model", Created: m.Created.Unix(), OwnedBy: m.OwnedBy,
		Type: "model", DisplayName: m.ID, CreatedAt: m.Created.UTC().Format(time.RFC3339),
		MaxModelLen: m.Context, Aliases: aliases,
	}
}

func (s *server) listModels(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, struct {
		Object  string      `json:"object"`
		Data    []modelBody `json:"data"`
		HasMore bool        `json:"has_more"`
		FirstID string      `json:"first_id"`
		LastID  string      `json:"last_id"`
	}{"list", []modelBody{s.Model.body()}, false, s.Model.ID, s.Model.ID})
}

// getModel takes ids with a slash, as it is or as %2F.
func (s *server) getModel(w http.ResponseWriter, r *http.Request) {
	id := mux.Vars(r)["id"]
	if err := s.Model.is(&id); err != nil {
		writeError(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, s.Model.body())
}
