package server

import (
	"fmt"
	"net/http"
	"strings"

	"calla/core/engine"
	"calla/core/schema"
)

// Line is a field as GET /v1/capabilities and the README show it.
type Line struct {
	Name     string  `json:"name"` // "messages[role=user].content"
	Support  Support `json:"support"`
	Required bool    `json:"required,omitempty"`
	Values   string  `json:"values,omitempty"`
	Note     string  `json:"note,omitempty"`
}

// lines flattens a table.
func lines(o object, prefix string) []Line {
	var all []Line
	for _, f := range o {
		line := Line{Name: prefix + f.Name, Support: f.support(), Required: f.Required, Note: f.Note}
		if f.Takes != nil {
			line.Values = f.Takes.says()
		}
		all = append(all, line)
		all = append(all, within(f.Takes, line.Name)...)
	}
	return all
}

// within returns the lines of what a field's value is made of.
func within(s shape, name string) []Line {
	switch s := s.(type) {
	case object:
		return lines(s, name+".")
	case list:
		if _, ok := s.of.(tagged); ok {
			return within(s.of, name)
		}
		return within(s.of, name+"[]")
	case either:
		var all []Line
		for _, one := range s {
			all = append(all, within(one, name)...)
		}
		return all
	case tagged:
		return s.lines(name)
	}
	return nil
}

func (t tagged) lines(name string) []Line {
	var all []Line
	for _, c := range t.cases {
		at := fmt.Sprintf("%s[%s=%s]", name, t.tag, strings.Join(c.values, "/"))
		if c.refused != "" {
			all = append(all, Line{Name: at, Support: Refused, Note: c.refused})
			continue
		}
		all = append(all, Line{Name: at, Support: Honoured, Note: c.note})
		all = append(all, lines(c.fields, at+".")...)
	}
	return all
}

// api is an endpoint that takes a body, and the table of its fields.
type api struct {
	path   string
	fields object
}

var apis = []api{
	{"/v1/chat/completions", chatFields},
	{"/v1/completions", completionFields},
	{"/v1/responses", responsesFields},
	{"/v1/messages", messagesFields},
	{"/v1/messages/count_tokens", countFields},
	{"/tokenize", tokenizeFields},
	{"/detokenize", detokenizeFields},
}

// headerLines are the headers that mean something beside those of HTTP.
var headerLines = []Line{
	{Name: "Authorization", Support: Honoured, Values: "Bearer KEY", Note: "needed where the server has a key"},
	{Name: "x-api-key", Support: Honoured, Values: "KEY", Note: "as Authorization"},
	{Name: "anthropic-version", Support: Honoured, Note: "ignored: there is one version"},
	{Name: "anthropic-beta", Support: Honoured, Note: "allows nothing and forbids nothing: fields are judged by this table"},
}

type capabilitiesBody struct {
	Object    string            `json:"object"`
	Version   string            `json:"version"`
	Model     modelBody         `json:"model"`
	Endpoints []endpointBody    `json:"endpoints"`
	Fields    map[string][]Line `json:"fields"` // by the endpoint's path
	Headers   []Line            `json:"headers"`
	Efforts   []effortBody      `json:"reasoning_efforts"`
	Sampling  samplingDefaults  `json:"sampling_defaults"`
	Limits    map[string]int    `json:"limits"`
	Schemas   schemaBody        `json:"json_schema"`
}

// schemaBody is what of JSON Schema answers and arguments are held to.
type schemaBody struct {
	Keywords []string `json:"keywords"`
	Formats  []string `json:"formats"`
}

type endpointBody struct {
	Method  string `json:"method"`
	Path    string `json:"path"`
	Summary string `json:"summary"`
}

type effortBody struct {
	Name     string `json:"name"`
	Thinking bool   `json:"thinking"`
	Budget   *int   `json:"budget_tokens"` // null: no bound
}

// samplingDefaults are how tokens are chosen where a request says nothing.
type samplingDefaults struct {
	NotThinking samplingBody `json:"thinking_off"`
	Thinking    samplingBody `json:"thinking_on"`
}

type samplingBody struct {
	Temperature       float64 `json:"temperature"` // 0 is greedy
	TopP              float64 `json:"top_p"`       // 1 is off
	TopK              int     `json:"top_k"`       // 0 is off
	MinP              float64 `json:"min_p"`
	RepetitionPenalty float64 `json:"repetition_penalty"` // 1 is off
}

func samplingBodyOf(s engine.Sampling) samplingBody {
	b := samplingBody{s.Temperature, s.TopP, s.TopK, s.MinP, s.RepetitionPenalty}
	if b.TopP == 0 {
		b.TopP = 1
	}
	if b.RepetitionPenalty == 0 {
		b.RepetitionPenalty = 1
	}
	return b
}

func (s *server) capabilities(w http.ResponseWriter, r *http.Request) {
	c := capabilitiesBody{
		Object: "capabilities", Version: s.Version, Model: s.Model.body(),
		Fields: map[string][]Line{}, Headers: headerLines,
		Sampling: samplingDefaults{samplingBodyOf(engine.Sampling{}), samplingBodyOf(s.Model.Thinking)},
		Limits: map[string]int{
			"context_tokens": s.Model.Context, "body_bytes": maxBody, "json_depth": maxDepth, "json_values": maxValues,
			"choices": maxChoices, "tools": maxTools, "stop_bytes": maxStopBytes,
		},
		Schemas: schemaBody{schema.Keywords(), schema.Formats()},
	}
	for _, r := range s.routes {
		c.Endpoints = append(c.Endpoints, endpointBody{r.method, r.plainPath(), r.summary})
	}
	for _, a := range apis {
		c.Fields[a.path] = lines(a.fields, "")
	}
	for _, e := range efforts {
		body := effortBody{Name: e.name, Thinking: e.thinking}
		if e.budget > 0 || !e.thinking {
			body.Budget = &e.budget
		}
		c.Efforts = append(c.Efforts, body)
	}
	writeJSON(w, http.StatusOK, c)
}
