package contract

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
)

// lie is one way to be wrong, laid over a server that is right.
type lie struct {
	name    string
	request func(*http.Request)             // changes what the server sees
	body    func(string) string             // changes the request's body
	answer  func(path, body string) string  // changes the answer's body
	header  func(h http.Header, status int) // changes the answer's headers
	status  map[int]int                     // changes the answer's status
	fails   []string                        // "area: name" of checks that must fail
}

func replace(pairs ...string) func(string) string { return strings.NewReplacer(pairs...).Replace }

func replaceIn(pairs ...string) func(string, string) string {
	return func(_, body string) string { return replace(pairs...)(body) }
}

func (l lie) over(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if l.request != nil {
			l.request(r)
		}
		if l.body != nil {
			b, _ := io.ReadAll(r.Body)
			changed := l.body(string(b))
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(changed)), int64(len(changed))
		}
		r.Header.Del("Accept-Encoding") // what is compressed can't be changed
		got := httptest.NewRecorder()
		h.ServeHTTP(got, r)
		if l.header != nil {
			l.header(got.Header(), got.Code)
		}
		body := got.Body.String()
		if l.answer != nil {
			body = l.answer(r.URL.Path, body)
		}
		for name, values := range got.Header() {
			w.Header()[name] = values
		}
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		if other, ok := l.status[got.Code]; ok {
			got.Code = other
		}
		w.WriteHeader(got.Code)
		io.WriteString(w, body)
	})
}

// lenient is what a server sees of a body that encoding/json has read: the last
// of two keys, and characters in the place of broken bytes.
func lenient(body string) string {
	var v any
	if d := json.NewDecoder(strings.NewReader(body)); d.Decode(&v) != nil {
		return body
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.Encode(v)
	return b.String()
}

func lies() []lie {
	const think = "thinking: on: the thought is apart from the content"
	return []lie{
		{name: "unknown fields are dropped", body: replace(`"frobnicate":1,`, ``, `,"frobnicate":1`, ``), fails: []string{
			`refusals: "frobnicate":1`, "streams: an unknown field is an error before the headers", "messages: an unknown field",
			"fields: /v1/responses: what the table does not have is refused",
		}},
		{name: "fields in any case", body: replace(`"Temperature"`, `"temperature"`, `"temperature":0,`, ``), fails: []string{`refusals: "Temperature":1`}},
		{name: "JSON is read leniently", body: lenient, fails: []string{
			"wire: a duplicate key", "wire: a duplicate key far below", "wire: the byte 0xFF", "wire: an overlong form of UTF-8",
			"wire: a surrogate in UTF-8", "wire: a lone surrogate escaped", "wire: bytes after the document",
		}},
		{name: "values are clamped", body: replace(`"temperature":2.1`, `"temperature":2`, `"max_tokens":0`, `"max_tokens":1`, `"n":129`, `"n":2`), fails: []string{
			`refusals: "temperature":2.1`, `refusals: "max_tokens":0`, `refusals: "n":129`,
		}},
		{name: "any model is served", body: replace("nobody-has-this", "org/Scripted"), fails: []string{
			"models: a completion by a model that is not there", "streams: an unknown model is an error before the headers",
		}},
		{name: "models are found in any case", body: replace("ORG/SCRIPTED", "org/Scripted"), fails: []string{"models: the model's id in another case"}},
		{name: "an unknown model is a 400", status: map[int]int{404: 400}, fails: []string{"models: a model that is not there", "paths: GET /nothing"}},
		{name: "a listed model is another", answer: func(path, body string) string {
			if path == "/v1/models" {
				return replace("org/Scripted", "org/Other")(body)
			}
			return body
		}, fails: []string{"models: the list has the model"}},

		{name: "stop is not looked at", body: replace(`"stop":`, `"user":"x","metadata":null,"x":`, `"user":"x","metadata":null,"x":[`, ``), fails: []string{"chat: stop text"}},
		{name: "the stop text is part of the answer", answer: replaceIn(`"content":"Paris: "`, `"content":"Paris: 漢字"`), fails: []string{"chat: stop text"}},
		{name: "the smaller limit does not win", body: replace(`"max_tokens":3,"max_completion_tokens":2`, `"max_tokens":3`), fails: []string{"chat: both limits: the smaller one"}},
		{name: "length ends as stop", answer: replaceIn(`"finish_reason":"length"`, `"finish_reason":"stop"`), fails: []string{"chat: max_tokens", "chat: max_completion_tokens"}},
		{name: "the total is wrong", answer: replaceIn(`"total_tokens":`, `"total_tokens":1`), fails: []string{"chat: an answer", "streams: a stream is the whole answer", "responses: a limit"}},
		{name: "one choice, whatever n is", body: replace(`"n":2`, `"n":1`), fails: []string{"chat: n choices"}},
		{name: "a developer is a user", body: replace(`"role":"developer"`, `"role":"user"`), fails: []string{"chat: developer messages are system messages"}},
		{name: "no logprobs", answer: replaceIn(`"logprobs":{"content"`, `"logprobs":null,"x":{"content"`), fails: []string{"chat: logprobs"}},
		{name: "JSON mode is not looked at", body: replace(`"response_format":{"type":"json_object"}`, `"user":"x"`), fails: []string{"chat: JSON mode is kept to or refused"}},
		{name: "null is None", body: replace(`"content":null}`, `"content":"None"}`), fails: []string{"contents: user: nothing in all its forms", "contents: assistant: nothing in all its forms"}},
		{name: "lines between parts", body: replace(`{"type":"text","text":"one "}`, `{"type":"text","text":"one \n"}`), fails: []string{"contents: user: text in all its forms", "contents: tool: text in all its forms"}},
		{name: "images are dropped", body: replace(`,{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}`, ``), fails: []string{"contents: user: an image", "contents: system: an image"}},
		{name: "a system message may be late", body: replace(`{"role":"system","content":"b"},`, ``), fails: []string{"wire: a system message late"}},

		{name: "streams do not end", answer: replaceIn("data: [DONE]\n\n", ""), fails: []string{"streams: a stream is the whole answer", "completions: a stream is the whole answer"}},
		{name: "usage comes with a choice", answer: replaceIn(`"choices":[],"usage"`, `"choices":[{"index":0,"delta":{},"finish_reason":null}],"usage"`), fails: []string{"streams: include_usage true", "streams: a stream is the whole answer"}},
		{name: "usage comes unasked", body: replace(`"stream":true}`, `"stream":true,"stream_options":{"include_usage":true}}`, `"include_usage":false`, `"include_usage":true`), fails: []string{"streams: no stream_options", "streams: include_usage false"}},
		{name: "usage never comes", body: replace(`"include_usage":true`, `"include_usage":false`), fails: []string{"streams: include_usage true"}},
		{name: "half a character", answer: func(_, body string) string {
			if strings.HasPrefix(body, "data:") {
				return replace("漢", "\ufffd")(body)
			}
			return body
		}, fails: []string{"streams: a stream is the whole answer", "streams: characters of several bytes stay whole"}},
		{name: "bytes that are no UTF-8", answer: replaceIn("漢", "\xe6\xbc"), fails: []string{"chat: an answer", "streams: characters of several bytes stay whole"}},
		{name: "two finish reasons", answer: replaceIn(`"finish_reason":null}`, `"finish_reason":"stop"}`), fails: []string{"streams: a stream is the whole answer"}},
		{name: "a refusal within a stream", status: map[int]int{404: 200}, fails: []string{"streams: an unknown model is an error before the headers"}},

		{name: "the thought is content", answer: replaceIn(`"reasoning_content":`, `"thought":`), fails: []string{think, "thinking: a budget of 4 tokens"}},
		{name: "the thought's tags are content", answer: replaceIn(`"content":"Paris`, `"content":"</think>Paris`), fails: []string{think, "thinking: off: there is no thought"}},
		{name: "the thought is not counted", answer: replaceIn(`"reasoning_tokens":`, `"x":`), fails: []string{think}},
		{name: "thinking can't be turned off", body: replace(`"enable_thinking":false`, `"enable_thinking":true`, `"reasoning_effort":"none"`, `"reasoning_effort":"high"`), fails: []string{"thinking: off: there is no thought", "thinking: effort none: there is no thought"}},
		{name: "the budget is not looked at", body: replace(`"thinking_budget":4`, `"thinking_budget":4000`), fails: []string{"thinking: a budget of 4 tokens"}},
		{name: "contradictions are taken", body: replace(`"reasoning_effort":"none",`, ``), fails: []string{"thinking: switches that contradict each other"}},

		{name: "arguments are no JSON", answer: replaceIn(`{\"city\"`, `{'city'`), fails: []string{"tools: a call", "tools: a call, streamed"}},
		{name: "a call ends as stop", answer: replaceIn(`"finish_reason":"tool_calls"`, `"finish_reason":"stop"`), fails: []string{"tools: a call"}},
		{name: "the call's own syntax is content", answer: replaceIn(`"content":null`, `"content":"<tool_call>"`, `"content":""`, `"content":"<tool_call>"`), fails: []string{"tools: a call", "tools: a call, streamed"}},
		{name: "arguments are lost in streams", answer: replaceIn(`"arguments":"O"`, `"arguments":""`), fails: []string{"tools: a call, streamed"}},
		{name: "deltas of calls have no index", answer: replaceIn(`"tool_calls":[{"index":0,`, `"tool_calls":[{`), fails: []string{"tools: a call, streamed"}},
		{name: "tool_choice is not looked at", body: replace(`,"tool_choice":"none"`, ``, `"tool_choice":"none",`, ``), fails: []string{"tools: tool_choice none", "tools: tool_choice none hides the tools"}},
		{name: "results of no call are taken", body: replace(`{"role":"tool","tool_call_id":"call_9","content":"x"}`, `{"role":"user","content":"x"}`), fails: []string{"tools: the result of no call"}},

		{name: "ids are those of another text", answer: replaceIn(`"prompt_token_ids":[`, `"prompt_token_ids":[9,`), fails: []string{"completions: the tokens of a text, the same answer"}},
		{name: "one prompt of several", body: func(body string) string {
			return replace(`"prompt":["One, two, three,","One, two, three,"]`, `"prompt":"One, two, three,"`)(body)
		}, fails: []string{"completions: several texts"}},
		{name: "a long prompt is cut", body: func(body string) string {
			if i := strings.Index(body, strings.Repeat("0,", 2000)); i >= 0 {
				return body[:i] + "0]}"
			}
			return body
		}, fails: []string{"completions: a prompt that is too long"}},
		{name: "how long it was is not said", answer: replaceIn("2049", "many"), fails: []string{"completions: a prompt that is too long"}},
		{name: "negative tokens are taken", body: replace(`[1,-1]`, `[1,1]`), fails: []string{"completions: a negative token"}},

		{name: "an event is lost", answer: func(path, body string) string {
			if path != responsesPath {
				return body
			}
			i := strings.Index(body, "event: response.output_text.delta")
			if i < 0 {
				return body
			}
			return body[:i] + body[i+strings.Index(body[i:], "\n\n")+2:]
		}, fails: []string{"responses: a stream is the whole answer"}},
		{name: "an incomplete response is completed", answer: replaceIn(`"status":"incomplete"`, `"status":"completed"`), fails: []string{"responses: a limit"}},
		{name: "the conversation is forgotten in silence", body: replace(`,"previous_response_id":"resp_1"`, ``), fails: []string{"responses: nothing is stored: previous_response_id"}},
		{name: "an input that is read differently", body: replace(`[{"role":"user","content":"What is the capital of France?"}]}`, `"?"}`), fails: []string{"responses: input in all its forms"}},

		{name: "messages do not stop", answer: replaceIn("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", ""), fails: []string{"messages: a stream is the whole answer"}},
		{name: "OpenAI's error object for Anthropic's clients", answer: replaceIn(`{"type":"error","error":`, `{"error":`), fails: []string{"messages: an unknown field", "messages: no max_tokens"}},
		{name: "tokens are not counted, but guessed", answer: replaceIn(`{"input_tokens":`, `{"input_tokens":1`), fails: []string{"messages: count_tokens counts the prompt"}},
		{name: "a mark for the cache is text", body: replace(`,"cache_control":{"type":"ephemeral"}}`, `},{"type":"text","text":"ephemeral"}`), fails: []string{"messages: anthropic-version and cache_control change nothing"}},
		{name: "blocks are left open", answer: replaceIn(`event: content_block_stop`, `event: ping`), fails: []string{"messages: a stream is the whole answer"}},
		{name: "text that is not that of chat completions", answer: func(path, body string) string {
			if path == chatPath {
				return body
			}
			return replace("Paris", "London")(body)
		}, fails: []string{"messages: the answer is that of chat completions", "responses: the answer is that of chat completions"}},

		{name: "detokenize loses bytes", answer: replaceIn("é", "e"), fails: []string{"tokens: tokenize and back"}},
		{name: "a count that is not the list's", answer: replaceIn(`"count":`, `"count":1`), fails: []string{"tokens: tokenize and back", "tokens: tokenize counts the prompt of a conversation"}},
		{name: "a status without its queue", answer: replaceIn(`"queue":`, `"q":`), fails: []string{"operation: GET /v1/status"}},
		{name: "metrics of one's own", answer: replaceIn("# TYPE ", "# "), fails: []string{"operation: GET /metrics"}},

		{name: "the table says more than is done", answer: replaceIn(`"name":"seed","support":"honoured"`, `"name":"seed","support":"refused"`), fails: []string{"fields: /v1/chat/completions: what the table refuses is refused"}},
		{name: "the table fixes what is refused", answer: replaceIn(`"values":"\"auto\", \"default\""`, `"values":"\"auto\", \"flex\""`), fails: []string{"fields: /v1/chat/completions: what the table fixes is taken"}},
		{name: "null is a value", body: replace(`"seed":null`, `"seed":"null"`), fails: []string{"fields: /v1/chat/completions: null is no value", `defaults: "seed":null`}},

		{name: "no look at the Host", request: func(r *http.Request) { r.Host = localOf(r) }, fails: []string{
			"guard: a Host that begins like localhost", "guard: a Host that resolves to loopback", "guard: the Host of another site",
			"guard: the absolute form of another site", "guard: a forwarded Host", "guard: an empty Host",
		}},
		{name: "no look at the Origin", request: func(r *http.Request) { r.Header.Del("Origin") }, fails: []string{
			"guard: a page of another site", "guard: a page without an origin", "guard: a page of another port",
		}},
		{name: "a preflight is always well", request: func(r *http.Request) {
			if r.Method == http.MethodOptions {
				r.Method = http.MethodGet
				r.URL.Path = "/health"
				r.Header.Del("Origin")
			}
		}, fails: []string{"guard: a preflight of another site"}},
		{name: "any content type", request: func(r *http.Request) {
			if r.Method == http.MethodPost {
				r.Header.Set("Content-Type", "application/json")
				r.Header.Del("Content-Encoding")
			}
		}, fails: []string{"guard: a form", "guard: plain text", "guard: no content type", "guard: a compressed body"}},
		{name: "all pages may read", header: func(h http.Header, _ int) { h.Set("Access-Control-Allow-Origin", "*") }, fails: []string{"guard: no page may read the answers", "guard: a page of another site"}},
		{name: "no look at the key", request: func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+testKey) }, fails: []string{"key: no key", "key: another key", "key: the beginning of the key"}},
		{name: "one header for the key", request: func(r *http.Request) { r.Header.Del("X-Api-Key") }, fails: []string{"key: the key as x-api-key"}},
		{name: "errors in plain text", header: func(h http.Header, status int) {
			if status >= 400 {
				h.Set("Content-Type", "text/plain")
			}
		}, fails: []string{"paths: GET /v1/nothing", "wire: no JSON", `refusals: "n":0`, "key: no key"}},
		{name: "errors without their field", answer: replaceIn(`"param":"`, `"param":null,"x":"`), fails: []string{`refusals: "n":0`, "contents: user: an image", "tools: the result of no call"}},
		{name: "errors that do not say what there is", answer: replaceIn("/v1/chat/completions", "…"), fails: []string{"paths: POST /v1/embeddings"}},
		{name: "a wrong method is a wrong path", status: map[int]int{405: 404}, fails: []string{"paths: GET /v1/chat/completions"}},
		{name: "no word of the right method", header: func(h http.Header, _ int) { h.Del("Allow") }, fails: []string{"paths: DELETE /v1/models"}},
		{name: "not ready", status: map[int]int{200: 503}, fails: []string{"operation: GET /health", "operation: GET /health/ready"}},
	}
}

func localOf(r *http.Request) string {
	return r.Context().Value(http.LocalAddrContextKey).(interface{ String() string }).String()
}

// TestLies finds each lie out by the checks that are there for it.
func TestLies(t *testing.T) {
	right := scripted(t)
	checks := map[string]check{}
	for _, c := range table() {
		checks[c.area+": "+c.name] = c
	}
	for _, l := range lies() {
		t.Run(l.name, func(t *testing.T) {
			s, err := open(t.Context(), Target{URL: serving(t, l.over(right)), Key: testKey, Model: "org/Scripted"})
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range l.fails {
				c, ok := checks[name]
				if !ok {
					t.Fatalf("there is no check %q", name)
				}
				if r := s.result(t.Context(), c); r.Outcome != Fail {
					t.Errorf("%s: %s: %s, want fail", name, r.Outcome, r.Reason)
				}
			}
		})
	}
}
