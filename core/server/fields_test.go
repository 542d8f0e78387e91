package server

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
)

// wireTypes are what the bodies of the APIs are decoded into.
var wireTypes = map[string]any{
	"/v1/chat/completions":      chatRequest{},
	"/v1/completions":           completionRequest{},
	"/v1/responses":             responsesRequest{},
	"/v1/messages":              messagesRequest{},
	"/v1/messages/count_tokens": messagesRequest{},
	"/tokenize":                 tokenizeRequest{},
}

// inert fields are honoured by doing nothing: they identify, or ask for what
// cannot be otherwise.
var inert = map[string]bool{
	"user": true, "metadata": true, "safety_identifier": true, "text": true, "response_format": true, "prompt_cache_options": true,
	"cache_control": true, "add_special_tokens": true, "add_special": true,
}

// TestTablesAndWireTypesAgree: what a table honours is decoded, and nothing is
// decoded that no table has.
func TestTablesAndWireTypesAgree(t *testing.T) {
	for _, a := range apis {
		wire, ok := wireTypes[a.path]
		if !ok {
			continue
		}
		names := map[string]bool{}
		jsonNames(reflect.TypeOf(wire), names)
		for _, f := range a.fields {
			if f.support() == Honoured && !inert[f.Name] && !names[f.Name] {
				t.Errorf("%s: %s is honoured and not decoded", a.path, f.Name)
			}
			if f.Note == "" && f.support() != Honoured {
				t.Errorf("%s: %s is not honoured, and no note says why", a.path, f.Name)
			}
		}
		for name := range names {
			if a.fields.find(name) == nil && a.path != "/v1/messages/count_tokens" && !elsewhere[a.path+" "+name] {
				t.Errorf("%s: %s is decoded and in no table", a.path, name)
			}
		}
	}
}

// elsewhere are fields of shared wire types that an API has by another name.
var elsewhere = map[string]bool{
	"/v1/responses reasoning_effort": true, // reasoning.effort
	// Anthropic's API has only some of the sampling fields.
	"/v1/messages min_p": true, "/v1/messages presence_penalty": true, "/v1/messages frequency_penalty": true,
	"/v1/messages repetition_penalty": true, "/v1/messages logit_bias": true, "/v1/messages seed": true,
}

func jsonNames(t reflect.Type, names map[string]bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			jsonNames(f.Type, names)
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names[name] = true
	}
}

func TestTablesNameAFieldOnce(t *testing.T) {
	for _, a := range apis {
		seen := map[string]bool{}
		for _, l := range lines(a.fields, "") {
			if seen[l.Name] {
				t.Errorf("%s: %s twice", a.path, l.Name)
			}
			seen[l.Name] = true
			if strings.ContainsAny(l.Name+l.Values+l.Note, "|\n") {
				t.Errorf("%s: %s would break a table", a.path, l.Name)
			}
		}
	}
}

// TestRandomRequests makes requests out of the tables: whatever the table lets
// pass must be decoded and answered, or refused for what fields mean together.
func TestRandomRequests(t *testing.T) {
	f := &fake{play: always(toolCallScript()), status: EngineStatus{State: StateReady}}
	h := New(f.options())
	rng := rand.New(rand.NewPCG(1, 2))
	admitted := map[string]int{}
	for range 3000 {
		a := apis[rng.IntN(len(apis))]
		body := make1(rng, a.fields, 0).(map[string]any)
		if rng.IntN(10) > 0 && a.fields.find("model") != nil {
			body["model"] = "served"
		}
		data, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		r := httptest.NewRequest("POST", "http://127.0.0.1:80"+a.path, strings.NewReader(string(data)))
		r.Header.Set("Content-Type", "application/json")
		r = r.WithContext(contextAt(r.Context(), "127.0.0.1:80"))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		switch {
		case w.Code >= 500:
			t.Fatalf("%s: %d %s\nfor %s", a.path, w.Code, w.Body, data)
		case w.Code == 200:
			admitted[a.path]++
		case strings.Contains(w.Body.String(), codeUnknown), strings.Contains(w.Body.String(), codeType):
			t.Fatalf("%s: the table refuses what it says: %s\nfor %s", a.path, w.Body, data)
		}
	}
	for _, a := range apis {
		if admitted[a.path] < 10 {
			t.Errorf("%s: only %d random requests were answered", a.path, admitted[a.path])
		}
	}
}

// make1 makes a random value of a shape.
func make1(rng *rand.Rand, s shape, depth int) any {
	switch s := s.(type) {
	case object:
		return makeObject(rng, s, map[string]any{}, depth)
	case tagged:
		var cases []variant
		for _, c := range s.cases {
			if c.refused == "" {
				cases = append(cases, c)
			}
		}
		c := cases[rng.IntN(len(cases))]
		return makeObject(rng, c.fields, map[string]any{s.tag: c.values[rng.IntN(len(c.values))]}, depth)
	case list:
		n := s.min + rng.IntN(2)
		if s.min > 0 {
			n = s.min
		}
		items := []any{}
		for range n {
			items = append(items, make1(rng, s.of, depth+1))
		}
		return items
	case either:
		return make1(rng, s[rng.IntN(len(s))], depth)
	case text:
		return strings.Repeat("é", max(s.min, rng.IntN(4)))
	case identifier:
		return fmt.Sprintf("tool-%d", rng.IntN(1000000))
	case oneOf:
		return s[rng.IntN(len(s))]
	case only:
		return json.RawMessage(s[rng.IntN(len(s))])
	case boolean:
		return rng.IntN(2) == 0
	case integer:
		if s.min == math.MinInt64 {
			return rng.Int64() - rng.Int64()
		}
		return s.min + rng.Int64N(min(s.max-s.min+1, 5))
	case number:
		return s.min + rng.Float64()*(s.max-s.min)
	case free:
		if s.name != nil {
			return map[string]any{"5": 1.5}
		}
		if s.of != nil {
			return map[string]any{"a": make1(rng, s.of, depth+1)}
		}
		return map[string]any{"type": "object"}
	case promptShape:
		return []any{"text", []any{1, 2}, []any{"a", "b"}, []any{[]any{1}, []any{2, 3}}}[rng.IntN(4)]
	}
	panic(fmt.Sprintf("no values of shape %T", s))
}

func makeObject(rng *rand.Rand, fields object, into map[string]any, depth int) any {
	for _, f := range fields {
		// Most fields are left out, so that what they mean together is seldom a
		// contradiction.
		switch {
		case f.Takes == nil:
			if rng.IntN(20) == 0 {
				into[f.Name] = nil
			}
		case f.Required || rng.IntN(8+4*depth) == 0:
			into[f.Name] = make1(rng, f.Takes, depth+1)
		case rng.IntN(20) == 0:
			into[f.Name] = nil
		}
	}
	return into
}
