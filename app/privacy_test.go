package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"calla/core/backend"
	"calla/core/engine"
	"calla/core/model"
)

// The canary is a word that people write and a run of tokens that they send.
// Outside the vocabulary it is one token, which no other number looks like.
const (
	canary        = "Zanzibarkanarienvogel"
	canaryTokens  = "4711,4712,4713"
	canaryOutside = "471108150"
)

var canaryTold = regexp.MustCompile(`(?i)zanzibar|kanarien|4711\D{1,2}4712|47110815`)

// faulty stands between an engine and its weights and fails as a device might.
type faulty struct {
	backend.Weights
	fault *atomic.Pointer[func(backend.Call) error]
}

func (f faulty) Begin(s backend.State, c backend.Call) (backend.Pass, error) {
	if fault := f.fault.Load(); fault != nil {
		if err := (*fault)(c); err != nil {
			return nil, err
		}
	}
	return f.Weights.Begin(s, c)
}

// What people wrote is in nothing that the process writes: no log, no error, no
// metric, no status, no file.
func TestNothingTellsWhatPeopleWrote(t *testing.T) {
	home := t.TempDir()
	for _, name := range []string{"HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "XDG_DATA_HOME"} {
		t.Setenv(name, home)
	}
	file, err := openLog(filepath.Join(home, "calla.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	log := slog.New(slog.NewTextHandler(file, &slog.HandlerOptions{Level: slog.LevelDebug}))
	var fault atomic.Pointer[func(backend.Call) error]
	url := serveFaulty(t, log, &fault)

	for _, r := range canaryRequests() {
		for _, how := range []struct {
			name  string
			fault func(backend.Call) error
		}{
			{"well", nil},
			{"with a panic of its text", func(backend.Call) error { panic(canary) }},
			{"with a panic of its tokens", func(c backend.Call) error { panic(fmt.Sprint(c.Tokens)) }},
			{"with an index out of range", func(backend.Call) error { _ = make([]int, 1)[outside()]; return nil }},
			{"with a fault of the device", func(backend.Call) error { return errors.New("the device has gone") }},
		} {
			fault.Store(nil)
			if how.fault != nil {
				fault.Store(&how.fault)
			}
			status, body := send(t, context.Background(), url+r.path, r.body)
			if failed := status != 200 || strings.Contains(body, `"error"`); failed && canaryTold.MatchString(body) {
				t.Errorf("%s, %s: status %d, %s", r.path, how.name, status, body)
			}
			if how.fault == nil && status != r.status {
				t.Errorf("%s: status %d, want %d: %s", r.body, status, r.status, body)
			}
		}
	}
	fault.Store(nil)
	cancelHalfWay(t, url, &fault)
	everyEndpoint(t, url)
	for _, path := range []string{"/v1/models/" + canary, "/" + canary, "/page/" + canary, "/v1/models?" + canary} {
		send(t, context.Background(), url+path, "")
	}
	for _, path := range []string{"/metrics", "/v1/status", "/health", "/health/live", "/health/ready", "/v1/capabilities", "/v1/models", "/"} {
		if _, body := send(t, context.Background(), url+path, ""); canaryTold.MatchString(body) {
			t.Errorf("%s tells: %s", path, body)
		}
	}
	searchFiles(t, home)
}

// everyEndpoint wants a request with the canary for each endpoint that takes a
// body.
func everyEndpoint(t *testing.T, url string) {
	t.Helper()
	_, body := send(t, context.Background(), url+"/v1/capabilities", "")
	var c struct {
		Endpoints []struct{ Method, Path string }
	}
	if err := json.Unmarshal([]byte(body), &c); err != nil || len(c.Endpoints) == 0 {
		t.Fatalf("capabilities %.100s: %v", body, err)
	}
	for _, e := range c.Endpoints {
		has := func(r canaryRequest) bool { return r.path == e.Path }
		if e.Method == http.MethodPost && !slices.ContainsFunc(canaryRequests(), has) {
			t.Errorf("no request with the canary for %s", e.Path)
		}
	}
}

type canaryRequest struct {
	path, body string
	status     int
}

func canaryRequests() []canaryRequest {
	chat := func(rest string) string {
		return `{"model":"demo","max_tokens":4,"messages":[{"role":"system","content":"` + canary + `"},{"role":"user","content":"Say ` + canary + `"}]` + rest + `}`
	}
	tools := `,"tools":[{"type":"function","function":{"name":"` + canary + `","description":"` + canary + `","parameters":{"type":"object","properties":{"` + canary + `":{"type":"string"}}}}}]`
	return []canaryRequest{
		{"/v1/chat/completions", chat(""), 200},
		{"/v1/chat/completions", chat(`,"stream":true,"stream_options":{"include_usage":true}`), 200},
		{"/v1/chat/completions", chat(`,"chat_template_kwargs":{"enable_thinking":true}`), 200},
		{"/v1/chat/completions", chat(tools), 200},
		{"/v1/chat/completions", chat(`,"stop":["` + canary + `"],"user":"` + canary + `","prompt_cache_key":"` + canary + `"`), 200},
		{"/v1/chat/completions", chat(`,"logprobs":true,"top_logprobs":3,"n":2`), 200},
		{"/v1/chat/completions", chat(`,"logit_bias":{"` + canaryOutside + `":1}`), 400},
		{"/v1/chat/completions", chat(`,"temperature":"` + canary + `"`), 400},
		{"/v1/chat/completions", `{"model":"demo","messages":[{"role":"user","content":"` + strings.Repeat(canary+" ", 4000) + `"}]}`, 400},
		{"/v1/completions", `{"model":"demo","max_tokens":4,"prompt":"` + canary + `"}`, 200},
		{"/v1/completions", `{"model":"demo","max_tokens":4,"prompt":[` + canaryTokens + `]}`, 200},
		{"/v1/completions", `{"model":"demo","max_tokens":4,"prompt":[` + canaryOutside + `]}`, 400},
		{"/v1/messages", `{"model":"demo","max_tokens":4,"messages":[{"role":"user","content":"` + canary + `"}]}`, 200},
		{"/v1/messages", `{"model":"demo","max_tokens":4,"stream":true,"system":"` + canary + `","messages":[{"role":"user","content":"` + canary + `"}]}`, 200},
		{"/v1/messages/count_tokens", `{"model":"demo","messages":[{"role":"user","content":"` + canary + `"}]}`, 200},
		{"/v1/responses", `{"model":"demo","max_output_tokens":16,"store":false,"input":"` + canary + `"}`, 200},
		{"/v1/responses", `{"model":"demo","max_output_tokens":16,"stream":true,"input":"` + canary + `"}`, 200},
		{"/tokenize", `{"model":"demo","prompt":"` + canary + `"}`, 200},
		{"/detokenize", `{"model":"demo","tokens":[` + canaryTokens + `]}`, 200},
		{"/detokenize", `{"model":"demo","tokens":[` + canaryOutside + `]}`, 400},
	}
}

//go:noinline
func outside() int { return 47110815 }

// serveFaulty serves the demo model on weights that may fail.
func serveFaulty(t *testing.T, log *slog.Logger, fault *atomic.Pointer[func(backend.Call) error]) string {
	t.Helper()
	s := serveFlags{settings: demoSettings()}
	o, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	options, memory, err := s.engineOptions(o, log)
	if err != nil {
		t.Fatal(err)
	}
	load := func(ctx context.Context, progress func(done, total int64)) (*model.Model, func() error, error) {
		m, unload, err := o.loader()(ctx, progress)
		if err != nil {
			return nil, nil, err
		}
		return model.New(m.Config(), faulty{m.Weights(), fault}), unload, nil
	}
	e, err := engine.New(load, options)
	if err != nil {
		t.Fatal(err)
	}
	h, err := s.handler(o, e, memory, "", log)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(func() {
		srv.Close()
		endServing(o, e, log)
		o.Close()
	})
	return srv.URL
}

// send posts a body, or gets where there is none.
func send(t *testing.T, ctx context.Context, url, body string) (status int, answer string) {
	t.Helper()
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			t.Fatal(err)
		}
		return 0, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// cancelHalfWay has the client go away while its answer is generated.
func cancelHalfWay(t *testing.T, url string, fault *atomic.Pointer[func(backend.Call) error]) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	calls := 0
	hangUp := func(c backend.Call) error {
		if calls++; calls == 3 {
			cancel()
		}
		return nil
	}
	fault.Store(&hangUp)
	defer fault.Store(nil)
	send(t, ctx, url+"/v1/chat/completions", `{"model":"demo","stream":true,"messages":[{"role":"user","content":"`+canary+`"}]}`)
	if ctx.Err() == nil {
		t.Fatal("the answer ended before its client went away")
	}
}

// searchFiles looks for the canary in all that was written, and wants the log
// to have something in it.
func searchFiles(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if at := canaryTold.FindIndex(b); at != nil {
			t.Errorf("%s tells: …%s…", filepath.Base(path), b[max(0, at[0]-200):min(len(b), at[1]+50)])
		}
		if filepath.Base(path) == "calla.log" && bytes.Count(b, []byte("panic")) < 10 {
			t.Errorf("the log has %d bytes, want it to tell of the faults", len(b))
		} else if filepath.Base(path) != "calla.log" {
			t.Errorf("the process wrote %s, want a log alone", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
