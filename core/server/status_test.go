package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"calla/core/completion"
	"calla/core/engine"
)

// TestHealth: the truth about the engine, for every state.
func TestHealth(t *testing.T) {
	for _, tt := range []struct {
		state       State
		ready, live int
	}{
		{StateLoading, 503, 200},
		{StateReady, 200, 200},
		{StateBusy, 200, 200},
		{StateUnloaded, 200, 200},
		{StateStuck, 503, 503},
		{StateStopping, 503, 200},
		{StateFailed, 503, 503},
	} {
		t.Run(string(tt.state), func(t *testing.T) {
			f := &fake{status: EngineStatus{
				State: tt.state, Reason: "because", LastStep: 1500 * time.Millisecond,
				Progress: engine.Progress{Stage: engine.StageLoading, Done: 3, Total: 10},
			}}
			url := testServer(t, f)
			for path, want := range map[string]int{"/health": tt.ready, "/health/ready": tt.ready, "/health/live": tt.live} {
				r := get(t, url+path)
				var h healthBody
				r.into(t, &h)
				if r.status != want || h.Status != tt.state || h.Server != "calla" || h.Model != "org/Served-Model" || h.Version != "1.2.3" || h.Reason != "because" {
					t.Errorf("%s: %d %s, want %d", path, r.status, r.body, want)
				}
				if loading := tt.state == StateLoading; (h.Progress != nil) != loading || loading && *h.Progress != (progressBody{"loading", 3, 10}) {
					t.Errorf("%s: progress %+v", path, h.Progress)
				}
				if running := tt.state == StateBusy || tt.state == StateStuck; (h.LastStep != nil) != running || running && *h.LastStep != 1.5 {
					t.Errorf("%s: last step %v", path, h.LastStep)
				}
			}
		})
	}
}

func TestStatus(t *testing.T) {
	f := &fake{status: EngineStatus{
		State: StateBusy, LastStep: time.Second, Running: 1, Waiting: 2, Capacity: 64,
		MemoryUsed: 10, MemoryNeeded: 20, MemoryLimit: 30, CacheEntries: 2, CacheBytes: 5, PrefillRate: 900, DecodeRate: 140,
		Thermal: "serious", LowPower: true,
	}}
	url := testServer(t, f, func(o *Options) { o.Key = "" })
	var before Status
	get(t, url+"/v1/status").into(t, &before)
	if before.Throughput.Last != nil || before.Errors == nil || len(before.Errors) != 0 {
		t.Errorf("before any request: %+v", before)
	}
	end := done(completion.ReasonStop, 101)
	end.event.Result.PromptTokens, end.event.Result.CachedTokens = 1000, 200
	end.event.Result.Timing = engine.Timing{Queue: time.Second, Prefill: 2 * time.Second, Decode: 4 * time.Second}
	f.play = always([]moment{end})
	post(t, url+"/v1/chat/completions", hello)
	f.play = func(completion.Request) ([]moment, error) { return nil, engine.ErrQueueFull }
	post(t, url+"/v1/chat/completions", hello)
	post(t, url+"/v1/chat/completions", hello)
	f.play = func(completion.Request) ([]moment, error) { return nil, engine.ErrNotANumber }
	post(t, url+"/v1/chat/completions", hello)
	post(t, url+"/v1/chat/completions", "{}") // the client's fault, no error of ours

	var got Status
	r := get(t, url+"/v1/status")
	r.into(t, &got)
	last := got.Throughput.Last
	if last == nil || last.Prefill != 2 || last.Rates.Prefill != 400 || last.Rates.Decode != 25 || last.Queue != 1 || last.FinishReason != "stop" {
		t.Errorf("last answer %+v", last)
	}
	if got.Throughput.Now != (Rates{900, 140}) {
		t.Errorf("now %+v", got.Throughput.Now)
	}
	if got.Throughput.Thermal != "serious" || !got.Throughput.LowPower {
		t.Errorf("what slows the machine down: %s", r.body)
	}
	if got.State != StateBusy || got.Queue != (QueueStatus{1, 2, 64}) || got.Memory != (MemoryStatus{10, 20, 30}) || got.Cache != (CacheStatus{2, 5}) || got.KeyNeeded {
		t.Errorf("status %s", r.body)
	}
	if got.Requests.Total != 6 || got.Requests.Failed != 3 {
		t.Errorf("requests %+v", got.Requests)
	}
	if len(got.Errors) != 2 || got.Errors[0].Code != "not_a_number" || got.Errors[1].Code != "queue_full" || got.Errors[1].Count != 2 {
		t.Errorf("errors %+v", got.Errors)
	}
}

// TestStatusHour has minutes as they were counted, and none for those without
// work.
func TestStatusHour(t *testing.T) {
	at := time.Date(2026, 5, 4, 13, 7, 0, 0, time.UTC)
	f := &fake{}
	url := testServer(t, f)
	hour := func() Hour {
		var s Status
		get(t, url+"/v1/status").into(t, &s)
		return s.Throughput.Hour
	}
	if h := hour(); h.Minutes == nil || len(h.Minutes) != 0 || time.Since(h.At) > time.Hour {
		t.Errorf("before any work: %+v", h)
	}
	f.status.Hour = []engine.Minute{
		{Start: at, Prefill: engine.Work{Tokens: 900, Time: 1500 * time.Millisecond}},
		{Start: at.Add(2 * time.Minute), Decode: engine.Work{Tokens: 7, Time: 50 * time.Millisecond}},
	}
	want := []Minute{{at, Work{900, 1.5}, Work{}}, {at.Add(2 * time.Minute), Work{}, Work{7, 0.05}}}
	if d := cmp.Diff(want, hour().Minutes); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestStatusReceipt(t *testing.T) {
	at := time.Date(2026, 5, 4, 13, 7, 0, 0, time.UTC)
	want := Receipt{Source: Downloaded, Repository: "owner/name", Revision: "abc", Pinned: true, VerifiedAt: &at, Files: 2, Bytes: 12, Digest: "sha256:aa"}
	var got Status
	get(t, testServer(t, &fake{}, func(o *Options) { o.Model.Receipt = want })+"/v1/status").into(t, &got)
	if d := cmp.Diff(want, got.Receipt); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestJournalForgets(t *testing.T) {
	var j journal
	for i := range 3 * maxErrors {
		j.ended(&record{status: 500, code: fmt.Sprint(i)})
	}
	var s Status
	if j.fill(&s); len(s.Errors) != maxErrors || s.Errors[0].Code != fmt.Sprint(3*maxErrors-1) {
		t.Errorf("%d errors, newest %+v", len(s.Errors), s.Errors[0])
	}
}

func TestMetrics(t *testing.T) {
	f := &fake{play: always(toolCallScript()), status: EngineStatus{State: StateReady, Capacity: 64}}
	url := testServer(t, f)
	post(t, url+"/v1/chat/completions", hello)
	post(t, url+"/v1/chat/completions", "{}")
	get(t, url+"/nothing/here")
	r := get(t, url+"/metrics")
	for _, want := range []string{
		`calla_requests_total{route="/v1/chat/completions",status="200"} 1`,
		`calla_requests_total{route="/v1/chat/completions",status="400"} 1`,
		`calla_requests_total{route="none",status="404"} 1`,
		`calla_tokens_total{kind="prompt"} 5`,
		`calla_tokens_total{kind="cached"} 2`,
		`calla_tokens_total{kind="completion"} 9`,
		`calla_tokens_total{kind="reasoning"} 3`,
		`calla_time_to_first_token_seconds_count 1`,
		`calla_engine_state{state="ready"} 1`,
		`calla_engine_state{state="busy"} 0`,
		`calla_queue_requests{kind="capacity"} 64`,
		`calla_requests_in_flight 1`,
		"go_goroutines ",
		"process_resident_memory_bytes ",
	} {
		if !strings.Contains(r.body, want) {
			t.Errorf("no %s", want)
		}
	}
	if r.status != 200 || strings.Contains(r.body, "nothing") {
		t.Errorf("status %d", r.status)
	}
}

func TestCapabilities(t *testing.T) {
	var got capabilitiesBody
	get(t, testServer(t, &fake{})+"/v1/capabilities").into(t, &got)
	if got.Model.ID != "org/Served-Model" || got.Limits["context_tokens"] != 4096 {
		t.Errorf("model %+v, limits %v", got.Model, got.Limits)
	}
	find := func(path, name string) Line {
		for _, l := range got.Fields[path] {
			if l.Name == name {
				return l
			}
		}
		t.Errorf("%s has no line %s", path, name)
		return Line{}
	}
	for _, tt := range []struct {
		path, name string
		support    Support
		values     string
	}{
		{"/v1/chat/completions", "temperature", Honoured, "number 0–2"},
		{"/v1/chat/completions", "service_tier", Fixed, `"auto", "default"`},
		{"/v1/chat/completions", "audio", Refused, ""},
		{"/v1/chat/completions", "messages[role=user].content[type=text].text", Honoured, "string"},
		{"/v1/chat/completions", "messages[role=user].content[type=image_url/input_audio/file/video_url]", Refused, ""},
		{"/v1/chat/completions", "response_format[type=json_schema].json_schema.schema", Honoured, "object"},
		{"/v1/chat/completions", "tool_choice[type=allowed_tools]", Refused, ""},
		{"/v1/chat/completions", "chat_template_kwargs.enable_thinking", Honoured, "boolean"},
		{"/v1/messages", "cache_control.ttl", Honoured, `"5m", "1h"`},
		{"/v1/responses", "input[type=function_call].call_id", Honoured, "string"},
	} {
		if l := find(tt.path, tt.name); l.Support != tt.support || l.Values != tt.values {
			t.Errorf("%s %s: %+v", tt.path, tt.name, l)
		}
	}
	if d := cmp.Diff(samplingDefaults{samplingBody{TopP: 1, RepetitionPenalty: 1}, samplingBody{Temperature: 1, TopP: 0.95, TopK: 20, RepetitionPenalty: 1}}, got.Sampling); d != "" {
		t.Error(d)
	}
	if e := got.Efforts; len(e) != 7 || *e[0].Budget != 0 || *e[2].Budget != 2048 || e[6].Budget != nil {
		t.Errorf("efforts %+v", e)
	}
	if !slices.Contains(got.Schemas.Keywords, "anyOf") || !slices.Contains(got.Schemas.Formats, "date") {
		t.Errorf("JSON Schema %+v", got.Schemas)
	}
	if len(got.Endpoints) != len((&server{}).table()) || len(got.Fields) != len(apis) {
		t.Errorf("%d endpoints, %d tables", len(got.Endpoints), len(got.Fields))
	}
}

func TestTables(t *testing.T) {
	tables := Tables()
	for _, want := range []string{
		"| `POST /v1/chat/completions` |",
		"| `GET /v1/models/{id}` |",
		"| `messages` | honoured, required | array |",
		"| `store` | fixed | false | nothing is stored |",
		"| `anthropic-version` |",
	} {
		if !strings.Contains(tables, want) {
			t.Errorf("no %s", want)
		}
	}
	for i, line := range strings.Split(tables, "\n") {
		if n := strings.Count(line, "|"); strings.HasPrefix(line, "| `") && n != 5 && n != 3 {
			t.Errorf("line %d has %d bars: %s", i, n, line)
		}
	}
}

func TestTokenize(t *testing.T) {
	f := &fake{}
	var asked completion.Request
	url := testServer(t, f, func(o *Options) {
		o.Encode = func(r completion.Request) ([]int32, error) { asked = r; return []int32{7, 8}, nil }
	})
	for _, body := range []string{`{"prompt":"ab"}`, `{"content":"ab","model":"served"}`, `{"prompt":"ab","add_special_tokens":false,"parse_special":true}`} {
		r := post(t, url+"/tokenize", body)
		if r.status != 200 || strings.TrimSpace(r.body) != `{"tokens":[7,8],"count":2,"max_model_len":4096}` || *asked.Prompt != "ab" {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := post(t, url+"/tokenize", `{"prompt":""}`); strings.TrimSpace(r.body) != `{"tokens":[],"count":0,"max_model_len":4096}` {
		t.Errorf("nothing: %d %s", r.status, r.body)
	}
	r := post(t, url+"/tokenize", `{"messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"f"}}],"reasoning_effort":"low"}`)
	if r.status != 200 || len(asked.Messages) != 1 || len(asked.Tools) != 1 || !asked.Thinking {
		t.Errorf("conversation: %d %s, asked %+v", r.status, r.body, asked)
	}
	for body, param := range map[string]string{
		`{}`:                                   "prompt",
		`{"prompt":"a","content":"b"}`:         "prompt",
		`{"prompt":"a","with_pieces":true}`:    "with_pieces",
		`{"messages":[]}`:                      "messages",
		`{"prompt":["a"]}`:                     "prompt",
		`{"prompt":"a","parse_special":false}`: "parse_special",
	} {
		if r := post(t, url+"/tokenize", body); r.status != 400 || r.fault(t).Param != param {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := post(t, url+"/tokenize", `{"prompt":"a","model":"other"}`); r.status != 404 {
		t.Errorf("another model: %d", r.status)
	}
}

func TestDetokenize(t *testing.T) {
	url := testServer(t, &fake{}, func(o *Options) {
		decode := o.Decode
		o.Decode = func(ids []int32) (string, error) {
			if len(ids) == 3 {
				return "", errors.New("no")
			}
			return decode(ids)
		}
	}) + "/detokenize"
	if r := post(t, url, `{"tokens":[1,999]}`); r.status != 200 || strings.TrimSpace(r.body) != `{"prompt":"xx","content":"xx"}` {
		t.Errorf("%d %s", r.status, r.body)
	}
	for body, param := range map[string]string{
		`{}`: "tokens", `{"tokens":"1"}`: "tokens", `{"tokens":[1,1000]}`: "tokens[1]", `{"tokens":[-1]}`: "tokens[0]", `{"tokens":[1.0]}`: "tokens[0]",
	} {
		if r := post(t, url, body); r.status != 400 || r.fault(t).Param != param {
			t.Errorf("%s: %d %s", body, r.status, r.body)
		}
	}
	if r := post(t, url, `{"tokens":[1,2,3]}`); r.status != 500 {
		t.Errorf("fault below: %d", r.status)
	}
}
