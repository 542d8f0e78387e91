package server

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"calla/core/completion"
	"calla/core/engine"
)

// fake is what stands in for the layers below: a script of events for each
// request.
type fake struct {
	// play returns what happens to a request; an error refuses it.
	play func(completion.Request) ([]moment, error)

	mu       sync.Mutex
	requests []completion.Request
	streams  []*fakeStream
	status   EngineStatus
}

// moment is an event that comes after a while, or an error or a panic in its
// place.
type moment struct {
	after  time.Duration
	event  completion.Event
	err    error
	panics bool
}

var fakePrompt = []int32{1, 2, 3, 4, 5}

func (f *fake) Start(ctx context.Context, r completion.Request) (Stream, error) {
	moments, err := f.play(r)
	if err != nil {
		return nil, err
	}
	s := &fakeStream{ctx: ctx, moments: moments, closed: make(chan struct{})}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r)
	f.streams = append(f.streams, s)
	return s, nil
}

// last returns the newest request that was admitted.
func (f *fake) last(t *testing.T) completion.Request {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		t.Fatal("no request was admitted")
	}
	return f.requests[len(f.requests)-1]
}

// started returns the streams that were admitted so far.
func (f *fake) started() []*fakeStream {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.streams)
}

type fakeStream struct {
	ctx     context.Context
	moments []moment
	once    sync.Once
	closed  chan struct{}
	busy    atomic.Bool // in Next
	overlap atomic.Bool // closed while in Next
}

func (s *fakeStream) Prompt() []int32 { return fakePrompt }

func (s *fakeStream) Close() {
	if s.busy.Load() {
		s.overlap.Store(true)
	}
	s.once.Do(func() { close(s.closed) })
}

func (s *fakeStream) Next() (completion.Event, error) {
	s.busy.Store(true)
	defer s.busy.Store(false)
	if err := s.ctx.Err(); err != nil {
		return completion.Event{}, err
	}
	if len(s.moments) == 0 {
		return completion.Event{}, io.EOF
	}
	m := s.moments[0]
	s.moments = s.moments[1:]
	if m.after > 0 {
		timer := time.NewTimer(m.after)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
			time.Sleep(time.Millisecond) // a cancelled step takes a while, too
			return completion.Event{}, s.ctx.Err()
		}
	}
	if m.panics {
		panic("words of a person")
	}
	return m.event, m.err
}

// say is a script of content in the given pieces.
func say(pieces ...string) []moment {
	var ms []moment
	for _, p := range pieces {
		ms = append(ms, moment{event: completion.Event{Kind: completion.Content, Text: p}})
	}
	return append(ms, done(completion.ReasonStop, len(pieces)))
}

func done(reason completion.Reason, tokens int) moment {
	return moment{event: completion.Event{Kind: completion.Done, Result: &completion.Result{
		Reason: reason, PromptTokens: len(fakePrompt), CachedTokens: 2, CompletionTokens: tokens,
	}}}
}

// always plays one script for each request.
func always(ms []moment) func(completion.Request) ([]moment, error) {
	return func(completion.Request) ([]moment, error) { return ms, nil }
}

func (f *fake) options() Options {
	return Options{
		Model: Model{
			ID: "org/Served-Model", Aliases: []string{"served"}, Created: time.Unix(1700000000, 0), OwnedBy: "org",
			Context: 4096, Vocab: 1000, Thinking: engine.Sampling{Temperature: 1, TopK: 20, TopP: 0.95},
		},
		Version: "1.2.3",
		Start:   f.Start,
		Encode:  func(completion.Request) ([]int32, error) { return fakePrompt, nil },
		Decode:  func(ids []int32) (string, error) { return strings.Repeat("x", len(ids)), nil },
		Engine:  func() EngineStatus { f.mu.Lock(); defer f.mu.Unlock(); return f.status },
	}
}

// testServer serves a fake and returns its URL.
func testServer(t testing.TB, f *fake, change ...func(*Options)) string {
	t.Helper()
	if f.status.State == "" {
		f.status.State = StateReady
	}
	o := f.options()
	for _, c := range change {
		c(&o)
	}
	s := httptest.NewServer(New(o))
	t.Cleanup(s.Close)
	return s.URL
}

// reply is an answer as a client sees it.
type reply struct {
	status int
	header http.Header
	body   string
}

func post(t testing.TB, url, body string) reply {
	t.Helper()
	request, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	return do(t, request)
}

func get(t testing.TB, url string) reply {
	t.Helper()
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, request)
}

func do(t testing.TB, request *http.Request) reply {
	t.Helper()
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(data) {
		t.Fatalf("answer is not UTF-8: %q", data)
	}
	return reply{response.StatusCode, response.Header, string(data)}
}

// into decodes an answer's body.
func (r reply) into(t testing.TB, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("body %q: %v", r.body, err)
	}
}

// fault is an error object of OpenAI's.
type fault struct {
	Message string
	Type    string
	Param   string
	Code    string
}

func (r reply) fault(t testing.TB) fault {
	t.Helper()
	var body struct{ Error fault }
	r.into(t, &body)
	if body.Error.Message == "" || body.Error.Type == "" {
		t.Fatalf("status %d without an error object: %s", r.status, r.body)
	}
	return body.Error
}

// event is one server-sent event.
type event struct{ name, data string }

// events takes a stream apart, comments left out.
func (r reply) events(t testing.TB) []event {
	t.Helper()
	if got := r.header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
		t.Fatalf("status %d with content type %q: %s", r.status, got, r.body)
	}
	var list []event
	var e event
	for lines := bufio.NewScanner(bytes.NewReader([]byte(r.body))); lines.Scan(); {
		switch line := lines.Text(); {
		case line == "" && e != (event{}):
			list = append(list, e)
			e = event{}
		case strings.HasPrefix(line, "event: "):
			e.name = line[len("event: "):]
		case strings.HasPrefix(line, "data: "):
			e.data = line[len("data: "):]
		case line != "" && !strings.HasPrefix(line, ":"):
			t.Fatalf("line %q in a stream", line)
		}
	}
	return list
}

// contextAt is the context of a request that arrived at an address.
func contextAt(ctx context.Context, addr string) context.Context {
	return context.WithValue(ctx, http.LocalAddrContextKey, net.TCPAddrFromAddrPort(netip.MustParseAddrPort(addr)))
}
