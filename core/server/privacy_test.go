package server

import (
	"bytes"
	"errors"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	"calla/core/completion"
	"calla/core/engine"
)

// lockedBuffer is a buffer that many may write to.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

const (
	canary   = "CANARY7f3a"
	canaryID = 987654321 // a token's
)

// TestCanary sends a word through every endpoint, in every place that takes
// one, to success and to failure of every kind. It may come back in an answer
// and nowhere else: in no error, log, metric or status.
func TestCanary(t *testing.T) {
	var log lockedBuffer
	f := &fake{}
	url := testServer(t, f, func(o *Options) {
		o.Log = slog.New(slog.NewJSONHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		o.Model.Vocab = 1 << 30
		o.Encode = func(r completion.Request) ([]int32, error) {
			if _, err := f.play(r); err != nil {
				return nil, err
			}
			return []int32{canaryID}, nil
		}
	})
	scripts := map[string]func(completion.Request) ([]moment, error){
		"answers": always([]moment{
			{event: completion.Event{Kind: completion.Reasoning, Text: canary}},
			{event: completion.Event{Kind: completion.Content, Text: canary}},
			{event: completion.Event{Kind: completion.ToolCall, Name: canary}},
			{event: completion.Event{Kind: completion.Arguments, Text: `{"a":"` + canary + `"}`}},
			done(completion.ReasonStop, 3),
		}),
		"refuses":              func(completion.Request) ([]moment, error) { return nil, engine.ErrQueueFull },
		"refuses in own words": func(completion.Request) ([]moment, error) { return nil, errors.New(canary) },
		"panics":               func(completion.Request) ([]moment, error) { panic(canary) },
		"fails half-way":       always([]moment{{event: completion.Event{Kind: completion.Progress}}, {err: errors.New(canary)}}),
		"panics half-way":      always([]moment{{panics: true}}),
	}
	for name, play := range scripts {
		f.play = play
		for _, body := range canaryBodies() {
			for _, stream := range []string{"", `,"stream":true`} {
				for _, a := range apis {
					r := post(t, url+a.path+"?"+canary, strings.TrimSuffix(body, "}")+stream+"}")
					failed := r.status != 200 || name != "answers"
					if failed && strings.Contains(faultOf(r), canary) {
						t.Errorf("%s, %s, %s: %d %s", name, a.path, body, r.status, r.body)
					}
				}
			}
		}
	}
	for _, path := range []string{"/" + canary, "/v1/models/" + canary, "/v1/" + canary + "/x", "/v1/models?" + canary} {
		if r := get(t, url+path); strings.Contains(r.body, canary) {
			t.Errorf("%s: %s", path, r.body)
		}
	}
	request, _ := http.NewRequest("GET", url+"/v1/models", nil)
	for _, header := range []string{"Authorization", "X-Api-Key", "Origin", "User-Agent", "Cookie", "Referer"} {
		request.Header.Set(header, canary)
	}
	do(t, request)
	for _, path := range []string{"/metrics", "/v1/status", "/health", "/health/live", "/health/ready", "/v1/capabilities", "/v1/models"} {
		if r := get(t, url+path); strings.Contains(r.body, canary) {
			t.Errorf("%s tells: %s", path, r.body)
		}
	}
	got := log.String()
	if !strings.Contains(got, `"route":"/v1/chat/completions"`) || strings.Count(got, "\n") < 100 {
		t.Fatalf("the log has not what it should have: %.300s", got)
	}
	told := regexp.MustCompile(canary + `|words of a person|987654321`)
	if at := told.FindStringIndex(got); at != nil {
		t.Errorf("the log tells: ...%s...", got[max(0, at[0]-300):min(len(got), at[1]+100)])
	}
}

// faultOf returns what an answer says of its failure: of a stream the last two
// events. The name of an unknown field is cut out, since an error must name it.
func faultOf(r reply) string {
	if strings.Contains(r.body, codeUnknown) || strings.Contains(r.body, "is not a field here") {
		return ""
	}
	events := strings.Split(strings.TrimSpace(r.body), "\n\n")
	return strings.Join(events[max(0, len(events)-2):], "\n")
}

// canaryBodies are requests with the canary wherever a client may write.
func canaryBodies() []string {
	replace := strings.NewReplacer("C", canary).Replace
	return []string{
		`{"model":"served","messages":[{"role":"user","content":"` + canary + `"}]}`,
		`{"model":"served","max_tokens":5,"messages":[{"role":"user","content":"` + canary + `"}]}`,
		`{"model":"served","input":"` + canary + `","instructions":"` + canary + `"}`,
		`{"model":"served","prompt":"` + canary + `"}`,
		`{"model":"served","prompt":[987654321,987654321]}`,
		`{"tokens":[987654321,987654321]}`,
		`{"model":"` + canary + `","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"served","` + canary + `":"` + canary + `"}`,
		`{"model":"served","messages":[{"role":"` + canary + `","content":"x"}]}`,
		`{"model":"served","messages":[{"role":"user","content":[{"type":"` + canary + `"}]}]}`,
		`{"model":"served","messages":[{"role":"tool","tool_call_id":"` + canary + `","content":"x"}]}`,
		`{"model":"served","messages":[{"role":"user","content":"x"}],"stop":"` + canary + `","user":"` + canary + `","metadata":{"` + canary + `":"` + canary + `"},"prompt_cache_key":"` + canary + `"}`,
		`{"model":"served","messages":[{"role":"user","content":"x"}],"metadata":{"` + canary + `":1}}`,
		`{"model":"served","messages":[{"role":"user","content":"x"}],"logit_bias":{"` + canary + `":1}}`,
		`{"model":"served","messages":[{"role":"user","content":"x"}],"reasoning_effort":"` + canary + `"}`,
		`{"model":"served","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"` + canary + `","description":"` + canary + `","parameters":{"` + canary + `":1}}}]}`,
		`{"model":"served","messages":[{"role":"user","content":"x"}],"tools":[{"type":"function","function":{"name":"` + canary + ` "}}]}`,
		`{"model":"served","messages":[{"role":"user","content":"x"}],"service_tier":"` + canary + `"}`,
		`{"model":"served","messages":[{"role":"user","content":"` + canary + `\ud800"}]}`,
		`{"model":"served","messages":[{"role":"user","content":"` + canary + `","content":"` + canary + `"}]}`,
		replace(`{"C":1,"C":2}`),
		canary + "}",
	}
}
