package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"calla/core/completion"
	"calla/core/engine"
)

// TestClientGoesAway closes the connection at each stage of an answer: the
// completion must end, and with it all that it holds.
func TestClientGoesAway(t *testing.T) {
	progress := moment{event: completion.Event{Kind: completion.Progress, Progress: engine.Progress{Stage: engine.StagePrefill}}}
	forever := moment{after: time.Hour, event: completion.Event{Kind: completion.Content, Text: "never"}}
	for _, tt := range []struct {
		name   string
		script []moment
		stream bool
		until  string // read this before closing
		half   bool   // close the sending half alone
	}{
		{"in the queue", []moment{forever}, true, "HTTP/1.1 200", false},
		{"in prefill", []moment{progress, forever}, true, "HTTP/1.1 200", false},
		{"at the first token", append(say("first")[:1], forever), true, "first", false},
		{"in mid-stream", append(say("a", "b", "third")[:3], forever), true, "third", false},
		{"half of it, in mid-stream", append(say("first")[:1], forever), true, "first", true},
		{"while a whole answer is made", []moment{progress, forever}, false, "", false},
		{"half of it, while a whole answer is made", []moment{forever}, false, "", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &fake{play: always(tt.script)}
			url := testServer(t, f)
			conn, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			host := strings.TrimPrefix(url, "http://")
			body := helloWith(fmt.Sprintf(`"n":2,"stream":%t`, tt.stream))
			fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", host, len(body), body)
			in := bufio.NewReader(conn)
			for line := ""; tt.until != "" && !strings.Contains(line, tt.until); {
				if line, err = in.ReadString('\n'); err != nil {
					t.Fatal(err)
				}
			}
			for len(f.started()) < 2 {
				time.Sleep(time.Millisecond)
			}
			if tt.half {
				conn.(*net.TCPConn).CloseWrite()
			} else {
				conn.Close()
			}
			for i, s := range f.started() {
				select {
				case <-s.closed:
				case <-time.After(10 * time.Second):
					t.Fatalf("choice %d goes on", i)
				}
				if s.ctx.Err() == nil {
					t.Errorf("choice %d was not cancelled", i)
				}
				if s.overlap.Load() {
					t.Errorf("choice %d was closed while its next event was awaited", i)
				}
			}
			f.play = always(say("next"))
			if r := post(t, url+"/v1/chat/completions", hello); r.status != 200 {
				t.Errorf("the next request: %d %s", r.status, r.body)
			}
		})
	}
}

// scripted makes an answer of its own for each prompt, in pieces that cut
// words anywhere between characters.
func scripted(r completion.Request) ([]moment, error) {
	said := r.Messages[0].Content[0].Text
	var pieces []string
	for i := range 40 {
		pieces = append(pieces, fmt.Sprintf("%s:%d é漢😀 ", said, i))
	}
	ms := say(pieces...)
	for i := range ms {
		if i%7 == 0 {
			ms[i].after = time.Duration(i) * 50 * time.Microsecond
		}
	}
	return ms, nil
}

// TestManyClients has 64 clients at once, through every API and both ways to
// answer; each must get the answer that it gets alone.
func TestManyClients(t *testing.T) {
	f := &fake{play: scripted}
	url := testServer(t, f)
	ask := func(i int) string {
		said := fmt.Sprintf("client %d", i)
		switch i % 4 {
		case 0:
			r := post(t, url+"/v1/chat/completions", strings.Replace(hello, "Hello", said, 1))
			var c chatCompletion
			r.into(t, &c)
			return *c.Choices[0].Message.Content
		case 1:
			r := post(t, url+"/v1/chat/completions", strings.Replace(helloWith(`"stream":true`), "Hello", said, 1))
			return collect(t, r.events(t), 0).Content
		case 2:
			r := post(t, url+"/v1/responses", `{"model":"served","input":"`+said+`"}`)
			var c struct {
				Output []struct{ Content []textPart }
			}
			r.into(t, &c)
			return c.Output[0].Content[0].Text
		}
		r := post(t, url+"/v1/messages", strings.Replace(helloClaude, "Hello", said, 1))
		var c struct{ Content []textBlockBody }
		r.into(t, &c)
		return c.Content[0].Text
	}
	const clients = 64
	var alone, together [clients]string
	for i := range clients {
		alone[i] = ask(i)
	}
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() { together[i] = ask(i) })
	}
	all.Wait()
	for i := range clients {
		if together[i] != alone[i] || !strings.HasPrefix(alone[i], fmt.Sprintf("client %d:0 é漢😀 ", i)) {
			t.Errorf("client %d: %q together, %q alone", i, together[i], alone[i])
		}
	}
}

// TestStreamsAreWholeCharacters sends text of every length of character: no
// event may end within one, and all together say what was said.
func TestStreamsAreWholeCharacters(t *testing.T) {
	pieces := []string{"👩‍👩‍👧‍👦", " 漢字", " é", "\u2028\u2029", "\r\n\n", "data: [DONE]\n\n", "\x00\x7f", `"\`, "�"}
	f := &fake{play: always(say(pieces...))}
	url := testServer(t, f)
	want := strings.Join(pieces, "")
	if got := collect(t, post(t, url+"/v1/chat/completions", helloWith(`"stream":true`)).events(t), 0); got.Content != want {
		t.Errorf("streamed %q, want %q", got.Content, want)
	}
	var whole chatCompletion
	post(t, url+"/v1/chat/completions", hello).into(t, &whole)
	if got := *whole.Choices[0].Message.Content; got != want {
		t.Errorf("whole %q, want %q", got, want)
	}
}

// TestBatches: events that are there already go out together, up to a size.
func TestBatches(t *testing.T) {
	for _, tt := range []struct {
		name       string
		size, want int // bytes of each event's text; flushes
	}{
		{"small ones", 10, 1},
		{"large ones", maxBatch / 4, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			const events = 12
			steps := make(chan step, events+1)
			for range events {
				steps <- step{event: completion.Event{Kind: completion.Content, Text: strings.Repeat("x", tt.size)}}
			}
			steps <- step{event: done(completion.ReasonStop, events).event}
			w := &flushes{ResponseRecorder: httptest.NewRecorder()}
			f := follower{job: &job{voice: &chatVoice{}}, out: openEvents(w), answers: []*answer{{}}}
			w.n = 0
			if err := f.listen(t.Context(), steps, 1); err != nil {
				t.Fatal(err)
			}
			if w.n != tt.want {
				t.Errorf("%d flushes, want %d", w.n, tt.want)
			}
		})
	}
}

type flushes struct {
	*httptest.ResponseRecorder
	n int
}

func (f *flushes) Flush() { f.n++ }

// TestHeadersComeAtOnce reads them before the first event is there.
func TestHeadersComeAtOnce(t *testing.T) {
	release := make(chan struct{})
	f := &fake{}
	url := testServer(t, f, func(o *Options) {
		o.Start = func(ctx context.Context, _ completion.Request) (Stream, error) {
			return &gatedStream{&fakeStream{ctx: ctx, moments: say("x"), closed: make(chan struct{})}, release}, nil
		}
	})
	for _, path := range []string{"/v1/chat/completions", "/v1/messages"} {
		body := helloWith(`"stream":true`)
		if path == "/v1/messages" {
			body = claudeWith(`"stream":true`)
		}
		request, _ := http.NewRequest("POST", url+path, strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		response, err := http.DefaultTransport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case release <- struct{}{}:
		case <-time.After(10 * time.Second):
			t.Fatal("nobody waits for the first event")
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
	}
}

// gatedStream gives its first event when it is told to.
type gatedStream struct {
	*fakeStream
	gate chan struct{}
}

func (s *gatedStream) Next() (completion.Event, error) {
	if s.gate != nil {
		<-s.gate
		s.gate = nil
	}
	return s.fakeStream.Next()
}
