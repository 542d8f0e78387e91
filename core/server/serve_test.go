package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"calla/core/completion"
)

// pipes is a listener whose connections are in memory, so that a test can let
// time pass at once.
type pipes struct {
	conns  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.once.Do(func() { close(p.closed) }); return nil }
func (p *pipes) Addr() net.Addr { return pipeAddr }

var pipeAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 11535}

type pipeConn struct{ net.Conn }

func (pipeConn) LocalAddr() net.Addr { return pipeAddr }

func (p *pipes) dial() net.Conn {
	client, server := net.Pipe()
	p.conns <- pipeConn{server}
	return client
}

// serving runs f beside a server in a bubble of its own time.
func serving(t *testing.T, f *fake, run func(p *pipes)) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		f.status.State = StateReady
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, []net.Listener{p}, New(f.options()), time.Minute) }()
		run(p)
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

const requestHead = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost:11535\r\nContent-Type: application/json\r\n"

func requestOf(body string) string {
	return fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", requestHead, len(body), body)
}

// TestSlowClients holds how long a client may take over each part of an
// exchange.
func TestSlowClients(t *testing.T) {
	for _, tt := range []struct {
		name, send string
		within     time.Duration
		want       string
	}{
		{"nothing sent", "", headerTime + time.Second, ""},
		{"headers that do not end", "POST /v1/chat/completions HTTP/1.1\r\nX: 1\r\n", headerTime + time.Second, ""},
		{"body that does not end", requestHead + "Content-Length: 1000\r\n\r\n{", bodyTime + time.Second, "incomplete_body"},
		{"body that nobody reads", "POST /nothing HTTP/1.1\r\nHost: localhost:11535\r\nContent-Length: 1000\r\n\r\n{", bodyTime + time.Second, "unknown_url"},
		{"no further request", requestOf(hello), idleTime + time.Second, "chat.completion"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			serving(t, &fake{play: always(say("x"))}, func(p *pipes) {
				conn := p.dial()
				defer conn.Close()
				begin := time.Now()
				go io.WriteString(conn, tt.send)
				answer, _ := io.ReadAll(conn)
				if took := time.Since(begin); took > tt.within {
					t.Errorf("closed after %v, want at most %v", took, tt.within)
				}
				if !strings.Contains(string(answer), tt.want) {
					t.Errorf("answer %q, want one with %q", answer, tt.want)
				}
			})
		})
	}
}

// TestDrip sends one byte of the headers a second, for ever.
func TestDrip(t *testing.T) {
	serving(t, &fake{}, func(p *pipes) {
		conn := p.dial()
		defer conn.Close()
		go io.Copy(io.Discard, conn)
		begin := time.Now()
		for {
			if _, err := conn.Write([]byte("x")); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if took := time.Since(begin); took > headerTime+2*time.Second {
			t.Errorf("cut off after %v, want %v", took, headerTime)
		}
	})
}

// TestUnreadStream leaves a stream unread: the completion must not be held up
// for ever, nor the queue behind it.
func TestUnreadStream(t *testing.T) {
	f := &fake{}
	f.play = func(completion.Request) ([]moment, error) {
		return say(strings.Repeat("x", 1<<20), "more"), nil
	}
	serving(t, f, func(p *pipes) {
		conn := p.dial()
		defer conn.Close()
		go io.WriteString(conn, requestOf(helloWith(`"stream":true`)))
		time.Sleep(writeTime + 2*time.Second)
		select {
		case <-f.started()[0].closed:
		default:
			t.Error("the completion is still open")
		}
	})
}

// TestLongWait is a prefill of 120 s, of which clients must hear.
func TestLongWait(t *testing.T) {
	f := &fake{}
	f.play = func(completion.Request) ([]moment, error) {
		script := say("at last")
		script[0].after = 120 * time.Second
		return script, nil
	}
	serving(t, f, func(p *pipes) {
		conn := p.dial()
		defer conn.Close()
		go io.WriteString(conn, requestOf(helloWith(`"stream":true`)))
		in := bufio.NewReader(conn)
		begin := time.Now()
		response, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > time.Second {
			t.Errorf("headers came after %v", took)
		}
		last, comments := begin, 0
		body := bufio.NewScanner(response.Body)
		for body.Scan() {
			if gap := time.Since(last); gap > 10*time.Second {
				t.Errorf("%v without a sign of life", gap)
			}
			last = time.Now()
			if strings.HasPrefix(body.Text(), ":") {
				comments++
			}
			if body.Text() == "data: [DONE]" {
				break
			}
		}
		if took := time.Since(begin); took < 120*time.Second || comments < 12 {
			t.Errorf("%d comments in %v", comments, took)
		}
	})
}

// TestStop ends a server under a stream that would not end.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{status: EngineStatus{State: StateReady}}
		f.play = func(completion.Request) ([]moment, error) {
			script := say("one", "two")
			script[1].after = time.Hour
			return script, nil
		}
		p := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, []net.Listener{p}, New(f.options()), time.Minute) }()
		conn := p.dial()
		go io.WriteString(conn, requestOf(helloWith(`"stream":true`)))
		answer := make(chan string)
		go func() {
			b, _ := io.ReadAll(conn)
			answer <- string(b)
		}()
		synctest.Wait()
		begin := time.Now()
		cancel()
		got := <-answer
		if took := time.Since(begin); took < time.Minute || took > time.Minute+2*time.Second {
			t.Errorf("the stream ended after %v, want the grace of a minute", took)
		}
		if !strings.Contains(got, "one") || !strings.Contains(got, `"code":"stopped"`) {
			t.Errorf("stream %q, want what came and an error event", got)
		}
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// TestStopDrains ends a server under an answer that finishes within the grace.
func TestStopDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{status: EngineStatus{State: StateReady}}
		f.play = func(completion.Request) ([]moment, error) {
			script := say("finished")
			script[0].after = 30 * time.Second
			return script, nil
		}
		p := newPipes()
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- Serve(ctx, []net.Listener{p}, New(f.options()), time.Minute) }()
		conn := p.dial()
		go io.WriteString(conn, requestOf(hello))
		go func() { time.Sleep(time.Second); cancel() }()
		b, _ := io.ReadAll(conn)
		if !strings.Contains(string(b), "finished") {
			t.Errorf("answer %q", b)
		}
		if err := <-ended; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
}

// TestOptionsOfEverything asks for the options of the whole server, which
// net/http would answer by itself, whoever asks.
func TestOptionsOfEverything(t *testing.T) {
	serving(t, &fake{}, func(p *pipes) {
		conn := p.dial()
		defer conn.Close()
		go io.WriteString(conn, "OPTIONS * HTTP/1.1\r\nHost: evil.com\r\nConnection: close\r\n\r\n")
		answer, _ := io.ReadAll(conn)
		if !strings.HasPrefix(string(answer), "HTTP/1.1 403 ") {
			t.Errorf("answer %q, want a refusal of the Host", answer)
		}
	})
}

// failingListener accepts nothing.
type failingListener struct{ *pipes }

func (failingListener) Accept() (net.Conn, error) { return nil, fmt.Errorf("no more files") }

func TestServeTellsWhyAListenerFailed(t *testing.T) {
	good := newPipes()
	err := Serve(context.Background(), []net.Listener{good, failingListener{newPipes()}}, New((&fake{}).options()), time.Second)
	if err == nil || !strings.Contains(err.Error(), "no more files") {
		t.Errorf("Serve: %v", err)
	}
	select {
	case <-good.closed:
	default:
		t.Error("the other listener is still open")
	}
}
