package contract

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

func modelChecks() []check {
	return []check{
		{"models", "the list has the model", func(s *session) error {
			ids, err := s.models()
			if err == nil && !slices.Contains(ids, s.model) {
				err = fmt.Errorf("the list has %q, want %q in it", ids, s.model)
			}
			return err
		}},
		{"models", "the model by its id", func(s *session) error {
			a, err := s.get("/v1/models/" + url.PathEscape(s.model))
			if err != nil {
				return err
			}
			var m struct{ ID, Object string }
			if err := a.into(&m); err != nil {
				return err
			}
			if m.ID != s.model || m.Object != "model" {
				return a.wrong(fmt.Sprintf("want the model %q", s.model))
			}
			return nil
		}},
		{"models", "a model that is not there", func(s *session) error {
			a, err := s.get("/v1/models/nobody-has-this")
			if err != nil {
				return err
			}
			return refusal{status: 404, code: "model_not_found"}.matches(a, "/v1/models")
		}},
		{"models", "a completion by a model that is not there", func(s *session) error {
			a, err := s.post(chatPath, strings.Replace(ask(""), modelMark, "nobody-has-this", 1))
			if err != nil {
				return err
			}
			if err := (refusal{status: 404, code: "model_not_found"}).matches(a, chatPath); err != nil {
				return err
			}
			if !strings.Contains(string(a.body), s.model) {
				return a.wrong("want a message that names the model that there is")
			}
			return nil
		}},
		{"models", "the model's id in another case", func(s *session) error {
			other := strings.ToUpper(s.model)
			if other == s.model {
				other = strings.ToLower(s.model)
			}
			ids, err := s.models()
			if err != nil {
				return err
			}
			if slices.Contains(ids, other) || other == s.model {
				return skipped("it has no other case")
			}
			one := *s
			one.model = other
			a, err := one.post(chatPath, ask(""))
			if err != nil {
				return err
			}
			return refusal{status: 404, code: "model_not_found"}.matches(a, chatPath)
		}},
	}
}

// models returns the ids that the server lists.
func (s *session) models() ([]string, error) {
	a, err := s.get("/v1/models")
	if err != nil {
		return nil, err
	}
	var list struct {
		Object string
		Data   []struct{ ID, Object string }
	}
	if err := a.into(&list); err != nil {
		return nil, fmt.Errorf("GET /v1/models: %w", err)
	}
	var ids []string
	for _, m := range list.Data {
		if m.ID == "" || m.Object != "model" {
			return nil, a.wrong(`want models, each with an id and the object "model"`)
		}
		ids = append(ids, m.ID)
	}
	if len(ids) == 0 || list.Object != "list" {
		return nil, errors.New("GET /v1/models: no list, or an empty one")
	}
	return ids, nil
}
