package contract

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"calla/core/server"
)

// TestOurServer holds our own server to its contract, with a model that says
// what makes things hard.
func TestOurServer(t *testing.T) {
	var all []Result
	err := Run(t.Context(), Target{URL: serving(t, scripted(t)), Key: testKey}, func(r Result) { all = append(all, r) })
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		if r.Outcome != Pass {
			t.Errorf("%s: %s: %s: %s", r.Outcome, r.Area, r.Name, r.Reason)
		}
	}
	if n := Counts(all)[Pass]; n != len(table()) {
		t.Errorf("%d of %d checks passed", n, len(table()))
	}
}

func TestNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range table() {
		name := c.area + ": " + c.name
		if seen[name] {
			t.Errorf("two checks are named %q", name)
		}
		seen[name] = true
	}
}

// TestEveryCheckCanFail runs all checks against servers that are wrong in
// everything: one that says yes to all and one that fails always. A check that
// neither fails would hold nothing.
func TestEveryCheckCanFail(t *testing.T) {
	urls := []string{careless(t)}
	for _, h := range []http.HandlerFunc{
		func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Access-Control-Allow-Origin", "*")
			io.WriteString(w, "{}")
		},
		func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			http.Error(w, "sorry", http.StatusInternalServerError)
		},
		// One that is right where it is asked what there is, and else says yes.
		func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("Content-Type", "application/json")
			switch {
			case r.URL.Path == "/v1/models":
				io.WriteString(w, `{"object":"list","data":[{"id":"any","object":"model"}]}`)
			case strings.HasPrefix(r.URL.Path, "/v1/models/"):
				io.WriteString(w, `{"id":"any","object":"model","max_model_len":16}`)
			case r.URL.Path == "/v1/capabilities":
				io.WriteString(w, capabilitiesOf(chatPath, completionsPath, responsesPath, messagesPath, messagesPath+"/count_tokens", "/tokenize", "/detokenize"))
			case leastBody[r.URL.Path] != "":
				io.WriteString(w, `{"object":"chat.completion","choices":[]}`)
			default:
				http.NotFound(w, r)
			}
		},
	} {
		urls = append(urls, serving(t, h))
	}
	failed := map[string]bool{}
	for _, url := range urls {
		s, err := open(t.Context(), Target{URL: url, Key: testKey, Model: "any"})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range table() {
			if r := s.result(t.Context(), c); r.Outcome == Fail {
				failed[c.area+": "+c.name] = true
			}
		}
	}
	for _, c := range table() {
		if name := c.area + ": " + c.name; !failed[name] {
			t.Errorf("no wrong server fails the check %q", name)
		}
	}
}

// careless is a server that answers whatever has an empty line in it.
func careless(t *testing.T) (url string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open sync.WaitGroup
	t.Cleanup(func() { l.Close(); open.Wait() })
	open.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			open.Go(func() {
				defer conn.Close()
				for r := bufio.NewReader(conn); ; {
					if line, err := r.ReadString('\n'); err != nil || line == "\r\n" {
						break
					}
				}
				io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}")
				conn.(*net.TCPConn).CloseWrite()
				conn.SetReadDeadline(time.Now().Add(time.Second))
				io.Copy(io.Discard, conn)
			})
		}
	})
	return "http://" + l.Addr().String()
}

func capabilitiesOf(paths ...string) string {
	var fields []string
	for _, p := range paths {
		fields = append(fields, `"`+p+`":[{"name":"no","support":"refused"},{"name":"one","support":"fixed","values":"1"}]`)
	}
	return `{"fields":{` + strings.Join(fields, ",") + `}}`
}

func TestTargets(t *testing.T) {
	url := serving(t, scripted(t))
	for _, path := range []string{"", "/", "/v1", "/v1/"} {
		s, err := open(t.Context(), Target{URL: url + path, Key: testKey})
		if err != nil || s.model != "org/Scripted" {
			t.Errorf("open of the path %q: %v, want the model that is listed", path, err)
		}
	}
	for _, url := range []string{"", "localhost:1", "ftp://localhost", "http://", "://"} {
		if err := Run(t.Context(), Target{URL: url}, func(Result) {}); err == nil {
			t.Errorf("Run of %q gives no error", url)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(gone, Target{URL: serving(t, server.New(server.Options{})), Model: "x"}, func(Result) {}); err == nil {
		t.Error("Run goes on after its context has ended")
	}
}
