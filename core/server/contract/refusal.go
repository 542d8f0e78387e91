package contract

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

// refusal is an answer that must be an error object.
type refusal struct {
	status int
	param  string // the field that must be named; empty asks for none
	code   string // empty leaves it to the server
}

// errorObject is OpenAI's; Anthropic's has a type beside and no param and code.
type errorObject struct {
	Type  string `json:"type"`
	Error *struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    any     `json:"code"`
	} `json:"error"`
}

// matches returns how an answer differs from the refusal. path says whose error
// object it must have.
func (want refusal) matches(a *answer, path string) error {
	if a.status != want.status {
		return a.wrong(fmt.Sprintf("want %d", want.status))
	}
	if kind := a.header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		return a.wrong("want a JSON error object, not " + kind)
	}
	var got errorObject
	if err := json.Unmarshal(a.body, &got); err != nil || got.Error == nil || got.Error.Message == "" || got.Error.Type == "" {
		return a.wrong("want an error object with message and type")
	}
	if anthropic(path) {
		if got.Type != "error" {
			return a.wrong(`want Anthropic's error object, with the type "error" beside it`)
		}
		if want.param != "" && !strings.Contains(got.Error.Message, want.param) {
			return a.wrong("want a message that names " + want.param)
		}
		return nil
	}
	if want.param != "" && (got.Error.Param == nil || *got.Error.Param != want.param) {
		return a.wrong("want the param " + want.param)
	}
	if want.code != "" && got.Error.Code != want.code {
		return a.wrong("want the code " + want.code)
	}
	return nil
}

// anthropic reports whether a path is of Anthropic's API.
func anthropic(path string) bool { return strings.HasPrefix(path, "/v1/messages") }

// refuse sends a body that must be refused.
func (s *session) refuse(path, body string, want refusal) error {
	if err := s.have(path); err != nil {
		return err
	}
	a, err := s.post(path, body)
	if err != nil {
		return err
	}
	return want.matches(a, path)
}

// refused is a line of a table of requests that must be refused.
type refused struct {
	name, path, body string
	want             refusal
}

// checksOf makes the checks of a table of refusals. After each the server must
// still answer.
func checksOf(area string, lines []refused) []check {
	var all []check
	for _, l := range lines {
		all = append(all, check{area, l.name, func(s *session) error {
			if err := s.refuse(l.path, l.body, l.want); err != nil {
				return err
			}
			a, err := s.get("/v1/models")
			if err != nil || a.status != http.StatusOK {
				return fmt.Errorf("afterwards the server does not answer: %v", err)
			}
			return nil
		}})
	}
	return all
}
