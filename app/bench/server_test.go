package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// serverOf is a server with one way to answer completions of either kind.
func serverOf(t *testing.T, chat bool, answer func(w http.ResponseWriter, body string)) *Server {
	t.Helper()
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.NotFound(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		answer(w, string(body))
	}))
	t.Cleanup(h.Close)
	s, err := NewServer(context.Background(), "the other server", h.URL+"/v1/", "", "m", chat)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const (
	textEvent  = `data: {"choices":[{"text":" 13"}]}` + "\n\n"
	usageEvent = `data: {"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":3}}}` + "\n\n"
	doneEvent  = "data: [DONE]\n\n"
)

func TestAskReadsStreams(t *testing.T) {
	want := Sample{Prompt: 100, Cached: 3, Generated: 9}
	for _, tt := range []struct {
		name   string
		chat   bool
		stream string
		want   Sample
		err    string
	}{
		{"completions", false, textEvent + textEvent + usageEvent + doneEvent, want, ""},
		{"no end mark", false, textEvent + usageEvent, want, ""},
		{"comments and names of events", false, ": hold on\n\nevent: x\n" + textEvent + usageEvent + doneEvent, want, ""},
		{"lines that end with CR LF", false, strings.ReplaceAll(textEvent+usageEvent+doneEvent, "\n", "\r\n"), want, ""},
		{"chat", true, `data: {"choices":[{"delta":{"role":"assistant","content":""}}]}` + "\n\n" + `data: {"choices":[{"delta":{"content":"13"}}]}` + "\n\n" + usageEvent + doneEvent, want, ""},
		{"chat that thinks", true, `data: {"choices":[{"delta":{"reasoning_content":"so"}}]}` + "\n\n" + usageEvent, want, ""},
		{"a usage without cached tokens", false, textEvent + `data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}` + "\n\n", Sample{Prompt: 5, Generated: 2}, ""},
		{"usage of null before the last", false, `data: {"choices":[{"text":"a"}],"usage":null}` + "\n\n" + usageEvent, want, ""},
		{"no usage", false, textEvent + doneEvent, Sample{}, "no usage at its end"},
		{"no text", false, usageEvent + doneEvent, Sample{}, "the answer is empty"},
		{"nothing at all", false, "", Sample{}, "no usage at its end"},
		{"no JSON", false, "data: {\n\n", Sample{}, "is no JSON"},
		{"an error in the stream", false, textEvent + `data: {"error":{"message":"out of memory"}}` + "\n\n", Sample{}, "out of memory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var asked map[string]any
			s := serverOf(t, tt.chat, func(w http.ResponseWriter, body string) {
				if err := json.Unmarshal([]byte(body), &asked); err != nil {
					t.Error(err)
				}
				io.WriteString(w, tt.stream)
			})
			got, err := s.Ask(context.Background(), "text", 9)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), s.URL) {
					t.Fatalf("Ask = %v, want an error of %s with %q", err, s.URL, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got.FirstToken <= 0 || got.Prefill != got.FirstToken || got.Decode < 0 {
				t.Errorf("times of %+v", got)
			}
			got.FirstToken, got.Prefill, got.Decode, got.Stream = 0, 0, 0, nil
			if got != tt.want {
				t.Errorf("Ask = %+v, want %+v", got, tt.want)
			}
			body := map[string]any{
				"model": "m", "max_tokens": 9.0, "temperature": 0.0, "stream": true,
				"stream_options": map[string]any{"include_usage": true}, "prompt": "text",
			}
			if tt.chat {
				delete(body, "prompt")
				body["messages"] = []any{map[string]any{"role": "user", "content": "text"}}
			}
			if d := cmp.Diff(body, asked); d != "" {
				t.Errorf("the request differs (-want +got):\n%s", d)
			}
		})
	}
}

func TestAskFails(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(w http.ResponseWriter, body string)
		want   string
	}{
		{"no such model", func(w http.ResponseWriter, _ string) { http.Error(w, "model m is unknown", 404) }, "404 (name another model, or take the other API with or without --chat): model m is unknown"},
		{"a key is missing", func(w http.ResponseWriter, _ string) { w.WriteHeader(401) }, "give its key"},
		{"too long", func(w http.ResponseWriter, _ string) { http.Error(w, "n_ctx is 512", 400) }, "within its context"},
		{"it fails", func(w http.ResponseWriter, _ string) { w.WriteHeader(500) }, "was answered 500"},
		{"the stream breaks off", func(w http.ResponseWriter, _ string) {
			io.WriteString(w, textEvent)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "broke off"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := serverOf(t, false, tt.answer)
			if _, err := s.Ask(context.Background(), "text", 9); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Ask = %v, want an error with %q", err, tt.want)
			}
		})
	}
	s := serverOf(t, false, nil)
	s.URL = "http://127.0.0.1:1"
	if _, err := s.Ask(context.Background(), "text", 9); err == nil || !strings.Contains(err.Error(), "is it running?") {
		t.Errorf("Ask where nobody listens = %v", err)
	}
}

// The first token's time is that of the first text, the decode's from there to
// the last, whatever else comes.
func TestAskTimesText(t *testing.T) {
	const pause = 30 * time.Millisecond
	s := serverOf(t, false, func(w http.ResponseWriter, _ string) {
		for _, part := range []string{`data: {"choices":[{"text":""}]}` + "\n\n", textEvent, textEvent, usageEvent} {
			time.Sleep(pause)
			io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	})
	got, err := s.Ask(context.Background(), "text", 9)
	// A loaded machine only adds to it.
	if err != nil || got.FirstToken < 2*pause || got.Decode < pause/2 {
		t.Errorf("Ask = %+v, %v, want the first token after %v and %v of decode", got, err, 2*pause, pause)
	}
}

func TestNewServer(t *testing.T) {
	models := `{"data":[{"id":"first","max_model_len":4096},{"id":"second"}]}`
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path + r.Header.Get("Authorization") {
		case "/v1/modelsBearer k":
			io.WriteString(w, models)
		case "/v1/statusBearer k":
			io.WriteString(w, `{"server":"calla","queue":{"running":1,"waiting":2}}`)
		default:
			w.WriteHeader(401)
		}
	}))
	defer h.Close()
	ctx := context.Background()
	s, err := NewServer(ctx, "ours", h.URL+"/v1", "k", "", false)
	if err != nil || s.Model != "first" {
		t.Fatalf("NewServer = %+v, %v, want the first model", s, err)
	}
	if n, err := s.Context(ctx); n != 4096 || err != nil {
		t.Errorf("Context = %d, %v, want 4096", n, err)
	}
	if n, known := s.Busy(ctx); n != 3 || !known {
		t.Errorf("Busy = %d, %t, want 3", n, known)
	}
	models = `{"data":[]}`
	for address, want := range map[string]string{
		h.URL: "lists no model", "127.0.0.1:80": "want an address such as", "ftp://x": "want an address such as", "": "want an address such as",
	} {
		if _, err := NewServer(ctx, "ours", address, "k", "", false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("NewServer(%q) = %v, want an error with %q", address, err, want)
		}
	}
	if _, err := NewServer(ctx, "ours", h.URL, "", "", false); err == nil || !strings.Contains(err.Error(), "give its key") {
		t.Errorf("NewServer without the key = %v", err)
	}
}

// A Calla with another request before or after ours was shared.
func TestAskSeesOthers(t *testing.T) {
	for _, tt := range []struct {
		name          string
		before, after int
		want          int
	}{{"alone", 0, 0, 0}, {"before", 1, 0, 1}, {"after", 0, 2, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			var waiting atomic.Int64
			waiting.Store(int64(tt.before))
			h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/status" {
					fmt.Fprintf(w, `{"server":"calla","queue":{"running":0,"waiting":%d}}`, waiting.Load())
					return
				}
				io.WriteString(w, textEvent+usageEvent)
				waiting.Store(int64(tt.after))
			}))
			defer h.Close()
			s := Server{Name: "ours", URL: h.URL, Client: h.Client()}
			got, err := s.Ask(context.Background(), "text", 9)
			if err != nil || got.Others != tt.want {
				t.Errorf("Ask = %+v, %v, want %d others", got, err, tt.want)
			}
		})
	}
}

func FuzzRead(f *testing.F) {
	for _, s := range []string{textEvent + usageEvent + doneEvent, "data:", "data: {\"choices\":null}\n", ": x\n", "data: {\"usage\":{\"prompt_tokens\":-1}}\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, stream string) {
		s := Server{Name: "x", URL: "http://x"}
		start := time.Now()
		got, err := s.read(strings.NewReader(stream), start, 9, func() {})
		if err == nil && (got.Prompt <= 0 || got.FirstToken < 0 || got.Decode < 0) {
			t.Errorf("read = %+v, want tokens of the prompt and times", got)
		}
	})
}
