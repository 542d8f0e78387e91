package page

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// proxy stands between the page and a calla process. It passes on what it is
// not told to play.
type proxy struct {
	url  string
	pass *httputil.ReverseProxy

	mu       sync.Mutex
	play     func(http.ResponseWriter, *http.Request) // chat completions; nil passes them on
	status   func(map[string]any)                     // changes what the status says; nil changes nothing
	onBytes  func(sent int)                           // called as the bytes of a completion pass
	requests []map[string]any                         // the bodies of chat completions
}

func newProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	p.pass = &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Origin") // it names the proxy
		},
		ModifyResponse: p.modify,
		ErrorHandler:   func(w http.ResponseWriter, _ *http.Request, _ error) { hangUp(w) },
	}
	s := httptest.NewServer(p)
	t.Cleanup(s.Close)
	p.url = s.URL
	return p
}

// set changes what the proxy does.
func (p *proxy) set(change func(*proxy)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change(p)
}

func (p *proxy) plays(play func(http.ResponseWriter, *http.Request)) {
	p.set(func(p *proxy) { p.play = play })
}

// request returns the body of the newest chat completion.
func (p *proxy) request(t *testing.T) map[string]any {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.requests) == 0 {
		t.Fatal("the page has asked for no completion")
	}
	return p.requests[len(p.requests)-1]
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	play := p.play
	if r.URL.Path == "/v1/chat/completions" {
		body, _ := io.ReadAll(r.Body)
		var request map[string]any
		json.Unmarshal(body, &request)
		p.requests = append(p.requests, request)
		r.Body = io.NopCloser(bytes.NewReader(body))
	} else {
		play = nil
	}
	p.mu.Unlock()
	if play != nil {
		play(w, r)
		return
	}
	p.pass.ServeHTTP(w, r)
}

func (p *proxy) modify(r *http.Response) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case r.Request.URL.Path == "/v1/chat/completions" && p.onBytes != nil:
		r.Body = &watched{ReadCloser: r.Body, on: p.onBytes}
	case r.Request.URL.Path == "/v1/status" && p.status != nil:
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			return err
		}
		p.status(body)
		out, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(out)), int64(len(out))
		r.Header.Set("Content-Length", fmt.Sprint(len(out)))
	}
	return nil
}

// watched is a body that tells how much of it was read. It is read in small
// pieces, so that much of it is still to come when it tells.
type watched struct {
	io.ReadCloser
	on   func(int)
	read int
}

func (b *watched) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p[:min(len(p), 512)])
	b.read += n
	b.on(b.read)
	return n, err
}

// someOf is how many bytes of the stream of "Count from 1 to 100." have more
// than the first ten numbers in them, and far from all.
const someOf = 12_000

// holds lets so many bytes of a completion pass, and the others once it is
// released, by the end of the test at the latest.
func (p *proxy) holds(t *testing.T, bytes int) (release func()) {
	released := make(chan struct{})
	p.set(func(p *proxy) {
		p.onBytes = func(sent int) {
			if sent > bytes {
				<-released
			}
		}
	})
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	return release
}

// hangUp breaks a connection off, as a server does that is not there.
func hangUp(w http.ResponseWriter) {
	if conn, _, err := http.NewResponseController(w).Hijack(); err == nil {
		conn.Close()
	}
}

// fault answers with an error object.
func fault(status int, code, message string, header ...string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i+1 < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":{"message":%s,"type":"server_error","param":null,"code":%s}}`, quote(message), quote(code))
	}
}

// stream is a scripted stream of events.
type stream struct {
	w http.ResponseWriter
}

// streams plays a stream that ends well.
func streams(script func(s stream, r *http.Request)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		s := stream{w}
		script(s, r)
		s.raw("data: [DONE]\n\n")
	}
}

func (s stream) raw(text string) {
	io.WriteString(s.w, text)
	http.NewResponseController(s.w).Flush()
}

func (s stream) event(format string, args ...any) {
	s.raw("data: " + fmt.Sprintf(format, args...) + "\n\n")
}

func (s stream) content(text string) {
	s.event(`{"choices":[{"index":0,"delta":{"content":%s},"finish_reason":null}]}`, quote(text))
}

func (s stream) progress(stage string, done, total int) {
	s.event(`{"choices":[],"progress":{"stage":%q,"done":%d,"total":%d}}`, stage, done, total)
}

func (s stream) end(reason string) {
	s.event(`{"choices":[{"index":0,"delta":{},"finish_reason":%q}]}`, reason)
	s.event(`{"choices":[],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110,"prompt_tokens_details":{"cached_tokens":60},"completion_tokens_details":{"reasoning_tokens":0}}}`)
}

// says plays an answer of one text, in pieces.
func says(text string) func(http.ResponseWriter, *http.Request) {
	return streams(func(s stream, _ *http.Request) {
		for piece := range strings.SplitAfterSeq(text, " ") {
			s.content(piece)
		}
		s.end("stop")
	})
}
