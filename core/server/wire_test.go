package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"calla/core/completion"
)

// TestWireErrors holds requests that must be refused against what is said of
// them. Values of the request never come back.
func TestWireErrors(t *testing.T) {
	const secret = "s3cret-value"
	for _, tt := range []struct {
		name, body string
		status     int
		code       string
		param      string
	}{
		{"empty body", "", 400, "invalid_json", ""},
		{"not JSON", "hello", 400, "invalid_json", ""},
		{"byte order mark", "\ufeff" + hello, 400, "invalid_json", ""},
		{"bytes after it", hello + "{}", 400, "invalid_json", ""},
		{"byte 0xFF", strings.Replace(hello, "Hello", "\xff", 1), 400, "invalid_json", ""},
		{"overlong form", strings.Replace(hello, "Hello", "\xc0\xaf", 1), 400, "invalid_json", ""},
		{"lone surrogate", strings.Replace(hello, "Hello", `\ud800`, 1), 400, "invalid_json", ""},
		{"NUL in a string", strings.Replace(hello, "Hello", "\x00", 1), 400, "invalid_json", ""},
		{"depth of 10,000", strings.Repeat("[", 10000), 400, "invalid_json", ""},
		{"duplicate key", helloWith(`"model":"served"`), 400, "invalid_json", ""},
		{"duplicate key far below", helloWith(`"metadata":{"a":"x","a":"y"}`), 400, "invalid_json", ""},
		{"an array", "[]", 400, "invalid_type", ""},
		{"a string", `"` + secret + `"`, 400, "invalid_type", ""},
		{"nothing in it", "{}", 400, "missing_required_parameter", "messages"},
		{"unknown field", helloWith(`"frobnicate":"` + secret + `"`), 400, "unknown_parameter", "frobnicate"},
		{"field in another case", helloWith(`"Temperature":1`), 400, "unknown_parameter", "Temperature"},
		{"unknown field below", helloWith(`"stream_options":{"include_all":true}`), 400, "unknown_parameter", "stream_options.include_all"},
		{"no messages", `{"model":"served","messages":[]}`, 400, "invalid_value", "messages"},
		{"null messages", `{"model":"served","messages":null}`, 400, "missing_required_parameter", "messages"},
		{"messages of another type", `{"model":"served","messages":"` + secret + `"}`, 400, "invalid_type", "messages"},
		{"a message that is a string", `{"model":"served","messages":["` + secret + `"]}`, 400, "invalid_type", "messages[0]"},
		{"no role", `{"model":"served","messages":[{"content":"x"}]}`, 400, "missing_required_parameter", "messages[0].role"},
		{"unknown role", `{"model":"served","messages":[{"role":"` + secret + `"}]}`, 400, "invalid_value", "messages[0].role"},
		{"old role", `{"model":"served","messages":[{"role":"function","name":"f","content":"x"}]}`, 400, "unsupported_value", "messages[0].role"},
		{"name", `{"model":"served","messages":[{"role":"user","content":"x","name":"` + secret + `"}]}`, 400, "unsupported_parameter", "messages[0].name"},
		{"another model", strings.Replace(hello, "served", secret, 1), 404, "model_not_found", "model"},
		{"model in another case", strings.Replace(hello, "served", "Served", 1), 404, "model_not_found", "model"},
		{"id without its owner", strings.Replace(hello, "served", "Served-Model", 1), 404, "model_not_found", "model"},
		{"empty model", strings.Replace(hello, "served", "", 1), 404, "model_not_found", "model"},
		{"no model", `{"messages":[{"role":"user","content":"x"}]}`, 404, "model_not_found", "model"},
		{"model of another type", strings.Replace(hello, `"served"`, "1", 1), 400, "invalid_type", "model"},
		{"image", `{"model":"served","messages":[{"role":"user","content":"x"},{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"` + secret + `"}}]}]}`, 400, "unsupported_value", "messages[1].content[1].type"},
		{"audio", `{"model":"served","messages":[{"role":"user","content":[{"type":"input_audio","input_audio":{}}]}]}`, 400, "unsupported_value", "messages[0].content[0].type"},
		{"part without a type", `{"model":"served","messages":[{"role":"user","content":[{"text":"a"}]}]}`, 400, "missing_required_parameter", "messages[0].content[0].type"},
		{"part without its text", `{"model":"served","messages":[{"role":"user","content":[{"type":"text"}]}]}`, 400, "missing_required_parameter", "messages[0].content[0].text"},
		{"content of another type", `{"model":"served","messages":[{"role":"user","content":1}]}`, 400, "invalid_type", "messages[0].content"},
		{"max_tokens of 0", helloWith(`"max_tokens":0`), 400, "invalid_value", "max_tokens"},
		{"negative max_tokens", helloWith(`"max_tokens":-1`), 400, "invalid_value", "max_tokens"},
		{"max_tokens of 2^63", helloWith(`"max_tokens":9223372036854775808`), 400, "invalid_value", "max_tokens"},
		{"max_tokens in quotes", helloWith(`"max_tokens":"12"`), 400, "invalid_type", "max_tokens"},
		{"max_tokens of 1.5", helloWith(`"max_tokens":1.5`), 400, "invalid_type", "max_tokens"},
		{"max_tokens of 1e3", helloWith(`"max_tokens":1e3`), 400, "invalid_type", "max_tokens"},
		{"max_completion_tokens of 0", helloWith(`"max_completion_tokens":0`), 400, "invalid_value", "max_completion_tokens"},
		{"temperature beyond 2", helloWith(`"temperature":2.1`), 400, "invalid_value", "temperature"},
		{"temperature beyond all numbers", helloWith(`"temperature":1e999`), 400, "invalid_value", "temperature"},
		{"temperature as text", helloWith(`"temperature":"hot"`), 400, "invalid_type", "temperature"},
		{"top_p beyond 1", helloWith(`"top_p":1.01`), 400, "invalid_value", "top_p"},
		{"repetition_penalty of 0", helloWith(`"repetition_penalty":0`), 400, "invalid_value", "repetition_penalty"},
		{"repetition_penalty that no number survives", helloWith(`"repetition_penalty":1e-300`), 400, "invalid_value", "repetition_penalty"},
		{"seed of 2^63", helloWith(`"seed":9223372036854775808`), 400, "invalid_value", "seed"},
		{"seed of a half", helloWith(`"seed":0.5`), 400, "invalid_type", "seed"},
		{"n of 0", helloWith(`"n":0`), 400, "invalid_value", "n"},
		{"n beyond the bound", helloWith(`"n":17`), 400, "invalid_value", "n"},
		{"five stops", helloWith(`"stop":["a","b","c","d","e"]`), 400, "invalid_value", "stop"},
		{"empty stop", helloWith(`"stop":""`), 400, "invalid_value", "stop"},
		{"empty stop among others", helloWith(`"stop":["a",""]`), 400, "invalid_value", "stop[1]"},
		{"null stop among others", helloWith(`"stop":["a",null]`), 400, "invalid_type", "stop[1]"},
		{"long stop", helloWith(`"stop":"` + strings.Repeat("x", 1025) + `"`), 400, "invalid_value", "stop"},
		{"bias of a name", helloWith(`"logit_bias":{"` + secret + `":1}`), 400, "invalid_value", "logit_bias"},
		{"bias of a number with zeros", helloWith(`"logit_bias":{"007":1}`), 400, "invalid_value", "logit_bias"},
		{"bias beyond the vocabulary", helloWith(`"logit_bias":{"1000":1}`), 400, "invalid_value", "logit_bias"},
		{"bias too large", helloWith(`"logit_bias":{"1":101}`), 400, "invalid_value", "logit_bias"},
		{"top_logprobs alone", helloWith(`"top_logprobs":3`), 400, "invalid_value", "top_logprobs"},
		{"21 top_logprobs", helloWith(`"logprobs":true,"top_logprobs":21`), 400, "invalid_value", "top_logprobs"},
		{"JSON schema without a schema", helloWith(`"response_format":{"type":"json_schema","json_schema":{"name":"n"}}`), 400, "missing_required_parameter", "response_format.json_schema.schema"},
		{"another format", helloWith(`"response_format":{"type":"xml"}`), 400, "invalid_value", "response_format.type"},
		{"tool_choice required", helloWith(`"tool_choice":"required"`), 400, "invalid_value", "tool_choice"},
		{"tool_choice without a name", helloWith(`"tool_choice":{"type":"function"}`), 400, "missing_required_parameter", "tool_choice.function"},
		{"tool_choice of another name", helloWith(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}`), 400, "invalid_value", "tool_choice"},
		{"allowed tools", helloWith(`"tool_choice":{"type":"allowed_tools"}`), 400, "unsupported_value", "tool_choice.type"},
		{"tool with a bad name", helloWith(`"tools":[{"type":"function","function":{"name":"a b"}}]`), 400, "invalid_value", "tools[0].function.name"},
		{"one tool twice", helloWith(`"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"f"}}]`), 400, "invalid_value", "tools[1].function.name"},
		{"custom tool", helloWith(`"tools":[{"type":"custom","custom":{"name":"f"}}]`), 400, "unsupported_value", "tools[0].type"},
		{"stored", helloWith(`"store":true`), 400, "unsupported_value", "store"},
		{"another tier", helloWith(`"service_tier":"priority"`), 400, "unsupported_value", "service_tier"},
		{"audio as an answer", helloWith(`"modalities":["text","audio"]`), 400, "unsupported_value", "modalities"},
		{"prediction", helloWith(`"prediction":{"type":"content","content":"` + secret + `"}`), 400, "unsupported_parameter", "prediction"},
		{"functions", helloWith(`"functions":[]`), 400, "unsupported_parameter", "functions"},
		{"padding", helloWith(`"stream":true,"stream_options":{"include_obfuscation":true}`), 400, "unsupported_value", "stream_options.include_obfuscation"},
		{"unknown effort", helloWith(`"reasoning_effort":"` + secret + `"`), 400, "invalid_value", "reasoning_effort"},
		{"effort against the switch", helloWith(`"reasoning_effort":"high","chat_template_kwargs":{"enable_thinking":false}`), 400, "invalid_value", "reasoning_effort"},
		{"no effort against the switch", helloWith(`"reasoning_effort":"none","chat_template_kwargs":{"enable_thinking":true}`), 400, "invalid_value", "reasoning_effort"},
		{"budget against the effort", helloWith(`"reasoning_effort":"none","thinking_budget":5`), 400, "invalid_value", "thinking_budget"},
		{"unknown template variable", helloWith(`"chat_template_kwargs":{"add_vision_id":true}`), 400, "unknown_parameter", "chat_template_kwargs.add_vision_id"},
		{"switch at the wrong place", helloWith(`"enable_thinking":true`), 400, "unsupported_parameter", "enable_thinking"},
		{"metadata that is no text", helloWith(`"metadata":{"a":1}`), 400, "invalid_type", "metadata"},
		{"result of no call", `{"model":"served","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"` + secret + `","content":"x"}]}`, 400, "invalid_value", "messages[1].tool_call_id"},
		{"call without a result", `{"model":"served","messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, 400, "invalid_value", "messages[0].tool_calls[0]"},
		{"arguments that are no object", `{"model":"served","messages":[{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"[]"}}]}]}`, 400, "invalid_value", "messages[0].tool_calls[0].function.arguments"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{play: always(say("ok"))}
			url := testServer(t, f)
			r := post(t, url+"/v1/chat/completions", tt.body)
			got := r.fault(t)
			if r.status != tt.status || got.Code != tt.code || got.Param != tt.param || got.Type != "invalid_request_error" {
				t.Errorf("%d %+v, want %d %s %q", r.status, got, tt.status, tt.code, tt.param)
			}
			if tt.param != "" && tt.code != "model_not_found" && !strings.Contains(got.Message, tt.param) {
				t.Errorf("message %q does not name the field", got.Message)
			}
			if tt.code == "model_not_found" && !strings.Contains(got.Message, "org/Served-Model") {
				t.Errorf("message %q does not name what is served", got.Message)
			}
			if strings.Contains(r.body, secret) {
				t.Errorf("a value came back: %s", r.body)
			}
			if len(f.requests) > 0 {
				t.Error("the request was admitted")
			}
			if r := post(t, url+"/v1/chat/completions", hello); r.status != 200 {
				t.Errorf("the server is not well afterwards: %d", r.status)
			}
		})
	}
}

// TestHugeString sends what fits the bounds of a body but no context.
func TestHugeString(t *testing.T) {
	f := &fake{play: always(say("ok"))}
	url := testServer(t, f) + "/v1/chat/completions"
	body := strings.Replace(hello, "Hello", strings.Repeat("a", 10<<20), 1)
	if r := post(t, url, body); r.status != 200 || len(f.last(t).Messages[0].Content[0].Text) != 10<<20 {
		t.Errorf("status %d: %.200s", r.status, r.body)
	}
}

func TestWrongPathsAndMethods(t *testing.T) {
	url := testServer(t, &fake{})
	for _, tt := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", "/", 405, "GET, HEAD"},
		{"GET", "/page/none.js", 404, ""},
		{"GET", "/page/../v1/models", 404, ""},
		{"GET", "/v1", 404, ""},
		{"POST", "/chat/completions", 404, ""},
		{"POST", "/v1/embeddings", 404, ""},
		{"POST", "//v1/chat/completions", 404, ""},
		{"POST", "/v1/chat/completions/", 404, ""},
		{"GET", "/v1/models/", 404, ""},
		{"GET", "/v1/responses/resp_1", 404, ""},
		{"GET", "/V1/models", 404, ""},
		{"GET", "/v1/../health", 404, ""},
		{"GET", "/v1/chat/completions", 405, "POST"},
		{"PUT", "/v1/chat/completions", 405, "POST"},
		{"DELETE", "/v1/models/served", 405, "GET, HEAD"},
		{"POST", "/v1/models", 405, "GET, HEAD"},
		{"POST", "/health", 405, "GET, HEAD"},
		{"OPTIONS", "/v1/messages", 405, "POST"},
		{"HEAD", "/health", 200, ""},
	} {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			r, _ := http.NewRequest(tt.method, url, nil)
			r.URL.Path = tt.path
			got := do(t, r)
			if got.status != tt.status || got.header.Get("Allow") != tt.allow {
				t.Fatalf("%d, Allow %q: %s", got.status, got.header.Get("Allow"), got.body)
			}
			switch {
			case tt.status == 404:
				if m := got.fault(t).Message; !strings.Contains(m, "POST /v1/chat/completions") || !strings.Contains(m, "GET /v1/models/{id}") {
					t.Errorf("message %q does not say what exists", m)
				}
			case tt.path == "/v1/messages":
				if !strings.HasPrefix(got.body, `{"type":"error"`) {
					t.Errorf("error object of another API: %s", got.body)
				}
			case tt.status == 405:
				got.fault(t)
			}
		})
	}
}

func TestModels(t *testing.T) {
	url := testServer(t, &fake{})
	var all struct {
		Object string
		Data   []modelBody
	}
	get(t, url+"/v1/models").into(t, &all)
	if all.Object != "list" || len(all.Data) != 1 || all.Data[0].ID != "org/Served-Model" || all.Data[0].Object != "model" || all.Data[0].Created != 1700000000 {
		t.Errorf("models %+v", all)
	}
	for _, tt := range []struct {
		path   string
		status int
	}{
		{"org/Served-Model", 200},
		{"org%2FServed-Model", 200},
		{"served", 200},
		{"Served-Model", 404},
		{"org/served-model", 404},
		{"gpt-4o", 404},
		{"org%2Fother", 404},
	} {
		r := get(t, url+"/v1/models/"+tt.path)
		if r.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.path, r.status, tt.status, r.body)
		}
		if tt.status == 404 {
			if e := r.fault(t); e.Code != "model_not_found" || !strings.Contains(e.Message, "org/Served-Model") || strings.Contains(e.Message, "gpt") {
				t.Errorf("%s: %+v", tt.path, e)
			}
			continue
		}
		var m modelBody
		if r.into(t, &m); m.ID != "org/Served-Model" {
			t.Errorf("%s: model %q", tt.path, m.ID)
		}
	}
}

// TestPanics breaks a handler before and after its headers.
func TestPanics(t *testing.T) {
	f := &fake{play: func(completion.Request) ([]moment, error) { panic("words of a person") }}
	url := testServer(t, f) + "/v1/chat/completions"
	if r := post(t, url, hello); r.status != 500 || r.fault(t).Code != "internal_error" || strings.Contains(r.body, "person") {
		t.Errorf("panic: %d %s", r.status, r.body)
	}
	f.play = always([]moment{{panics: true}})
	if r := post(t, url, hello); r.status != 500 || r.fault(t).Code != "internal_error" || strings.Contains(r.body, "person") {
		t.Errorf("panic below: %d %s", r.status, r.body)
	}
	// A call that was never begun is a fault of the layer below.
	f.play = always([]moment{{event: completion.Event{Kind: completion.Arguments, Index: 3, Text: "x"}}})
	request, _ := http.NewRequest("POST", url, strings.NewReader(helloWith(`"stream":true`)))
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		_, err = fmt.Fscan(response.Body, new(string), new(string))
		for err == nil {
			_, err = fmt.Fscan(response.Body, new(string))
		}
		response.Body.Close()
	}
	if err == nil || err.Error() == "EOF" {
		t.Errorf("a stream that broke ended like a whole one: %v", err)
	}
}

// FuzzRequest sends anything as the body of every API: the answer is a success
// or an error object, and the server lives.
func FuzzRequest(f *testing.F) {
	for _, a := range apis {
		f.Add(a.path, []byte(hello))
		f.Add(a.path, []byte(`{"model":"served","input":[{"role":"user","content":[{"type":"input_text","text":"x"}]}],"prompt":[[1,2],[3]],"max_tokens":5,"tokens":[1]}`))
		f.Add(a.path, []byte(helloWith(`"stop":["a"],"logit_bias":{"1":2},"tools":[{"type":"function","function":{"name":"f"}}],"stream":true`)))
	}
	fake := &fake{play: always(toolCallScript()), status: EngineStatus{State: StateReady}}
	h := New(fake.options())
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		r := httptest.NewRequest("POST", "http://127.0.0.1:80/", strings.NewReader(string(body)))
		r.URL.Path = path
		r.Header.Set("Content-Type", "application/json")
		r = r.WithContext(contextAt(r.Context(), "127.0.0.1:80"))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Fatalf("%s: status %d: %s", path, w.Code, w.Body)
		}
		if w.Code == 200 {
			return
		}
		var e struct{ Error fault }
		if err := json.Unmarshal(w.Body.Bytes(), &e); err != nil || e.Error.Message == "" {
			t.Fatalf("%s: status %d without an error object: %s", path, w.Code, w.Body)
		}
	})
}
