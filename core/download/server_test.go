package download

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"calla/core/download/hubtest"
)

// faulty calls change for replies that carry shard 1, which is the n-th of it.
func faulty(change func(n int, r *hubtest.Reply)) func(*hubtest.Reply) {
	return func(r *hubtest.Reply) {
		if r.Name == shard1 && !r.Probe {
			change(r.N, r)
		}
	}
}

// always calls change for every reply that has to do with shard 1.
func always(change func(r *hubtest.Reply)) func(*hubtest.Reply) {
	return func(r *hubtest.Reply) {
		if strings.HasSuffix(r.Request.URL.Path, shard1) {
			change(r)
		}
	}
}

// TestServerFaults pulls from a server that misbehaves for some time. The pull
// copes with it.
func TestServerFaults(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(*hubtest.Reply)
	}{
		{"every connection is cut early", faulty(func(n int, r *hubtest.Reply) { r.Cut = 3000 })},
		{"connections are cut before the first byte, then not", faulty(func(n int, r *hubtest.Reply) {
			if n <= 4 {
				r.Cut = 0
			}
		})},
		{"a body that is shorter than said", faulty(func(n int, r *hubtest.Reply) {
			if n <= 3 {
				r.Header.Set("Content-Length", fmt.Sprint(len(r.Body)))
				r.Body = r.Body[:len(r.Body)/2]
			}
		})},
		{"less than asked for, and said so", faulty(func(n int, r *hubtest.Reply) {
			if r.Status == 206 {
				r.Body = r.Body[:(len(r.Body)+1)/2]
				r.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", r.Begin, r.Begin+int64(len(r.Body))-1, len(r.Content)))
			}
		})},
		{"no ranges at all", func(r *hubtest.Reply) { r.Whole() }},
		{"no ranges at all, and cut", func(r *hubtest.Reply) {
			r.Whole()
			if r.N < 5 && !r.Probe {
				r.Cut = r.N * len(r.Body) / 5
			}
		}},
		{"no ranges and no length", func(r *hubtest.Reply) { r.Whole(); r.Header.Set("Transfer-Encoding", "chunked") }},
		{"the whole file from the second request on", faulty(func(n int, r *hubtest.Reply) {
			if n > 1 {
				r.Whole()
			}
		})},
		{"ranges and whole files in turn", faulty(func(n int, r *hubtest.Reply) {
			if n%2 == 0 {
				r.Whole()
			} else {
				r.Cut = 5000
			}
		})},
		{"another ETag each time", faulty(func(n int, r *hubtest.Reply) { r.Header.Set("ETag", fmt.Sprintf(`"%d"`, n)); r.Cut = 9000 })},
		{"another file at first, and another ETag with it", faulty(func(n int, r *hubtest.Reply) {
			if n == 1 {
				r.Header.Set("ETag", `"other"`)
				r.Body = hubtest.Random(99, len(r.Body))
			}
		})},
		{"408", failing(http.StatusRequestTimeout)},
		{"429", failing(http.StatusTooManyRequests)},
		{"500", failing(http.StatusInternalServerError)},
		{"502", failing(http.StatusBadGateway)},
		{"503", failing(http.StatusServiceUnavailable)},
		{"504", failing(http.StatusGatewayTimeout)},
		{"a trickle, then all", faulty(func(n int, r *hubtest.Reply) {
			if n == 1 {
				r.Trickle = 20 * time.Millisecond
			}
		})},
		{"silence in the middle, then all", faulty(func(n int, r *hubtest.Reply) {
			if n == 1 {
				r.Before = func(sent int) {
					if sent > 0 {
						<-r.Request.Context().Done()
					}
				}
			}
		})},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.hub.Misbehave(tt.fault)
			s.pull()
		})
	}
}

// failing answers a few requests for each file with a status.
func failing(status int) func(*hubtest.Reply) {
	return func(r *hubtest.Reply) {
		if r.N <= 3 && !r.Probe {
			r.Error(status)
			r.Header.Set("Retry-After", "0")
		}
	}
}

// TestServerRefused pulls from a server that can't be pulled from. The error
// says why, and what was fetched is kept.
func TestServerRefused(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(*hubtest.Reply)
		want  string
	}{
		{"wrong content", faulty(func(n int, r *hubtest.Reply) {
			r.Body = slices.Clone(r.Body)
			r.Body[len(r.Body)-1] ^= 1
		}), "want sha256:"},
		{"wrong content under changing ETags, again and again", faulty(func(n int, r *hubtest.Reply) {
			r.Header.Set("ETag", fmt.Sprintf(`"%d"`, n))
			r.Body = hubtest.Random(uint64(n), len(r.Body))
		}), "want sha256:"},
		{"a longer file", always(func(r *hubtest.Reply) {
			r.Header.Set("Content-Range", strings.Replace(r.Header.Get("Content-Range"), "/", "/9", 1))
		}), "has a file of 9"},
		{"a shorter file", always(func(r *hubtest.Reply) { r.Whole(); r.Body = r.Body[:1000] }), "has a file of 1000 bytes"},
		{"a log-in page", func(r *hubtest.Reply) { r.Page() }, ErrPage.Error()},
		{"a log-in page later on", faulty(func(n int, r *hubtest.Reply) { r.Page() }), ErrPage.Error()},
		{"gzip", faulty(func(n int, r *hubtest.Reply) { r.Header.Set("Content-Encoding", "gzip") }), "packed (gzip)"},
		{"401", faulty(func(n int, r *hubtest.Reply) { r.Error(401) }), "401 Unauthorized"},
		{"403", faulty(func(n int, r *hubtest.Reply) { r.Error(403) }), "403 Forbidden"},
		{"404", always(func(r *hubtest.Reply) { r.Error(404) }), "404 Not Found"},
		{"404 later on", faulty(func(n int, r *hubtest.Reply) { r.Error(404) }), "404 Not Found"},
		{"416", always(func(r *hubtest.Reply) { r.Error(416) }), "another length"},
		{"503 for ever", always(func(r *hubtest.Reply) { r.Error(503) }), "given up after 6 attempts"},
		{"nothing but cuts", faulty(func(n int, r *hubtest.Reply) { r.Cut = 0 }), "given up after 6 attempts"},
		{"silence behind the head", faulty(func(n int, r *hubtest.Reply) { r.Before = func(int) { <-r.Request.Context().Done() } }), "stalled"},
		{"silence", faulty(func(n int, r *hubtest.Reply) { r.Delay = time.Second }), "timeout awaiting response headers"},
		{"a redirect in circles", always(func(r *hubtest.Reply) { r.Redirect("http://" + r.Request.Host) }), "redirects"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.patience.stall, s.patience.answer = 50*time.Millisecond, 50*time.Millisecond
			s.hub.Misbehave(tt.fault)
			_, err := Pull(context.Background(), s.Options)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), shard1) && !errors.Is(err, ErrPage) {
				t.Errorf("error %v, want one with %q and the file's name", err, tt.want)
			}
			if _, err := os.Lstat(s.path(shard1)); err == nil {
				t.Error("a file that is not proved has its final name")
			}
			s.provedOnly()
			s.keepsWhatItHas()
		})
	}
}

// keepsWhatItHas pulls from the server in order, and checks that what was proved
// before is not asked for again.
func (s *site) keepsWhatItHas() {
	s.t.Helper()
	var proved []string
	for _, name := range s.list() {
		if s.right(name) {
			proved = append(proved, name)
		}
	}
	s.hub.Misbehave(nil)
	s.hub.Forget()
	s.pull()
	for _, name := range proved {
		if got := s.asked(name); len(got) > 0 {
			s.t.Errorf("%s was proved and is asked for again: %v", name, got)
		}
	}
}

// TestWrongIsThrownAway checks that nothing of a wrong file is left, and that
// the message has both digests.
func TestWrongIsThrownAway(t *testing.T) {
	s := newSite(t)
	wrong := hubtest.Random(5, 20*testPiece+1)
	s.hub.Misbehave(always(func(r *hubtest.Reply) {
		if r.Status == 206 {
			r.Body = wrong[r.Begin : int(r.Begin)+len(r.Body)]
		}
	}))
	_, err := Pull(context.Background(), s.Options)
	f, _ := s.Manifest.File(shard1)
	d := newDigest(f)
	d.Write(wrong)
	if err == nil || !strings.Contains(err.Error(), d.text()) || !strings.Contains(err.Error(), f.Digest()) {
		t.Errorf("error %v, want one with %s and %s", err, d.text(), f.Digest())
	}
	for _, suffix := range []string{"", partSuffix, journalSuffix} {
		if _, err := os.Lstat(s.path(shard1) + suffix); err == nil {
			t.Errorf("%s is left", shard1+suffix)
		}
	}
}

// TestCutAtEveryQuarter ends the pull itself when the server has sent a part of
// a shard. The next one asks for the rest alone.
func TestCutAtEveryQuarter(t *testing.T) {
	for _, quarter := range []int{0, 1, 2, 3} {
		t.Run(fmt.Sprintf("%d of 4", quarter), func(t *testing.T) {
			s := newSite(t, hubtest.File{Name: shard1, Content: hubtest.Random(3, 20*testPiece)})
			s.Connections, s.patience.attempts = 1, 1
			cut := quarter * 20 * testPiece / 4
			var sent int
			s.hub.Misbehave(faulty(func(n int, r *hubtest.Reply) {
				r.Cut = min(len(r.Body), cut-sent)
				sent += r.Cut
			}))
			if _, err := Pull(context.Background(), s.Options); err == nil {
				t.Fatal("Pull from a server that stops: no error")
			}
			s.provedOnly()
			s.hub.Misbehave(nil)
			s.hub.Forget()
			s.pull()
			var asked int64
			for _, r := range s.asked(shard1) {
				var a, b int64
				if _, err := fmt.Sscanf(r, "bytes=%d-%d", &a, &b); err != nil {
					t.Fatal(err)
				}
				asked += b + 1 - a
			}
			if want := int64(20*testPiece - cut); asked != want {
				t.Errorf("the second pull asks for %d bytes, want %d", asked, want)
			}
		})
	}
}

func TestRedirects(t *testing.T) {
	const token = "hf_secret"
	for _, tt := range []struct {
		name string
		to   func(other *hubtest.Hub, self string) string
		// whether requests to the place it leads to carry the token
		token bool
	}{
		{"to another host", func(o *hubtest.Hub, self string) string { return o.URL }, false},
		{"to another name of the same machine", func(o *hubtest.Hub, self string) string {
			return strings.Replace(self, "127.0.0.1", "localhost", 1)
		}, false},
		{"to the same host", func(o *hubtest.Hub, self string) string { return self + "/cdn" }, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			other := hubtest.New(t, s.hub.Files()...)
			to := tt.to(other, s.hub.URL)
			s.hub.Token, s.Token = token, token
			// A server that looks at the address it was asked by, and sends the
			// client on, once.
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Host == strings.TrimPrefix(s.Endpoint, "http://") && !strings.HasPrefix(r.URL.Path, "/cdn") {
					if r.Header.Get("Authorization") != "Bearer "+token {
						t.Errorf("the endpoint was asked without the token: %s", r.URL)
					}
					target := strings.Replace(to, s.hub.URL, s.Endpoint, 1)
					target = strings.Replace(target, strings.Replace(s.hub.URL, "127.0.0.1", "localhost", 1), strings.Replace(s.Endpoint, "127.0.0.1", "localhost", 1), 1)
					http.Redirect(w, r, target+r.URL.Path, http.StatusFound)
					return
				}
				if got := r.Header.Get("Authorization") != ""; got != tt.token {
					t.Errorf("%s was asked with a token: %v, want %v", r.URL, got, tt.token)
				}
				r.URL.Path = strings.TrimPrefix(r.URL.Path, "/cdn")
				other.ServeHTTP(w, r)
			}))
			defer front.Close()
			s.Endpoint = front.URL
			s.pull()
			for _, r := range other.Requests() {
				if (r.Authorization != "") != tt.token {
					t.Errorf("%s%s was asked with %q", r.Host, r.Path, r.Authorization)
				}
			}
		})
	}
}

// TestErrorsKeepSecrets: signed addresses and tokens are no part of messages.
func TestErrorsKeepSecrets(t *testing.T) {
	s := newSite(t)
	s.Token = "hf_secret"
	s.patience.attempts = 2
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close() // nobody listens there now
	s.hub.Misbehave(always(func(r *hubtest.Reply) { r.Redirect(gone.URL) }))
	_, err := Pull(context.Background(), s.Options)
	if err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("error %v, want one without the signed address that says what happened", err)
	}
}

func TestEndpoint(t *testing.T) {
	for _, tt := range []struct{ endpoint, want string }{
		{"", "https://huggingface.co/a/b/resolve/c0ffee/x%20%C3%A9.json"},
		{"https://mirror.test/", "https://mirror.test/a/b/resolve/c0ffee/x%20%C3%A9.json"},
		{"http://mirror.test:8080/hf", "http://mirror.test:8080/hf/a/b/resolve/c0ffee/x%20%C3%A9.json"},
		{"mirror.test", "error"},
		{"ftp://mirror.test", "error"},
		{"https://", "error"},
		{"https://mirror.test/?x=1", "error"},
		{"https://mirror.test/%zz", "error"},
	} {
		t.Run(tt.endpoint, func(t *testing.T) {
			o, err := newOrigin(tt.endpoint, Manifest{Repository: "a/b", Revision: "c0ffee"})
			got := "error"
			if err == nil {
				got = o.url(File{Name: "x é.json"})
			}
			if got != tt.want {
				t.Errorf("address %s (error %v), want %s", got, err, tt.want)
			}
		})
	}
}

// TestRequests checks what every request carries.
func TestRequests(t *testing.T) {
	s := newSite(t)
	s.pull()
	for _, r := range s.hub.Requests() {
		if r.Encoding != "identity" || r.Authorization != "" {
			t.Errorf("a request with Accept-Encoding %q and Authorization %q", r.Encoding, r.Authorization)
		}
	}
}

// TestProxy pulls through a proxy a host whose name only the proxy knows.
func TestProxy(t *testing.T) {
	s := newSite(t)
	var through atomic.Int64
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Host != "hub.test" {
			t.Errorf("the proxy was asked for %s", r.URL)
		}
		through.Add(1)
		s.hub.ServeHTTP(w, r)
	}))
	defer proxy.Close()
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "other.test")
	s.Endpoint, s.Proxy = "http://hub.test", SystemProxy()
	s.pull()
	if through.Load() == 0 {
		t.Error("nothing went through the proxy")
	}
	t.Setenv("HTTPS_PROXY", "http://secure.test:8080")
	if u, err := SystemProxy()(&http.Request{URL: &url.URL{Scheme: "https", Host: "huggingface.co"}}); err != nil || u == nil || u.Host != "secure.test:8080" {
		t.Errorf("https goes through %v, %v, want HTTPS_PROXY", u, err)
	}
	if u, err := s.Proxy(&http.Request{URL: &url.URL{Scheme: "http", Host: "other.test"}}); u != nil || err != nil {
		t.Errorf("other.test is reached by %v, %v, want no proxy", u, err)
	}
}

// TestAskedBeforeTheFirstByte: of a repository that lacks one file, or has it in
// another length, nothing is fetched.
func TestAskedBeforeTheFirstByte(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(*hubtest.Reply)
	}{
		{"a file is not there", always(func(r *hubtest.Reply) { r.Error(404) })},
		{"a file has another length", always(func(r *hubtest.Reply) { r.Whole(); r.Body = r.Body[:1000] })},
		{"a log-in page", always(func(r *hubtest.Reply) { r.Page() })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.hub.Misbehave(tt.fault)
			if _, err := Pull(context.Background(), s.Options); err == nil {
				t.Fatal("Pull: no error")
			}
			for _, r := range s.hub.Requests() {
				if r.Range != "bytes=0-0" {
					t.Errorf("%s was asked for %s", r.Path, r.Range)
				}
			}
		})
	}
}

// TestWholeFilesOnce: from a server that knows no ranges a file is not fetched
// once for every connection or piece.
func TestWholeFilesOnce(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(*hubtest.Reply)
		most  int // requests for the shard
	}{
		{"as the first answers tell", func(r *hubtest.Reply) { r.Whole() }, 1},
		{"as is seen later", faulty(func(n int, r *hubtest.Reply) { r.Whole() }), 4}, // one a connection, and the file
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t, hubtest.File{Name: shard1, Content: hubtest.Random(3, 40*testPiece)})
			s.hub.Misbehave(tt.fault)
			s.pull()
			if got := s.asked(shard1); len(got) > tt.most {
				t.Errorf("%d requests for the shard, want at most %d: %v", len(got), tt.most, got)
			}
		})
	}
}

// TestUntrustedCertificate is refused at once: it will be the same the next time.
func TestUntrustedCertificate(t *testing.T) {
	s := newSite(t)
	var asked atomic.Int64
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { asked.Add(1) }))
	defer secure.Close()
	s.Endpoint = secure.URL
	s.patience = usual
	_, err := Pull(context.Background(), s.Options)
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); !ok || asked.Load() > 0 {
		t.Errorf("Pull = %v after %d requests, want an error of the certificate", err, asked.Load())
	}
}

// TestEarlierPartsWereWrong: what an interrupted pull got from a wrong server
// makes the file wrong; the next pull finds that out and fetches it all.
func TestEarlierPartsWereWrong(t *testing.T) {
	s := newSite(t, hubtest.File{Name: shard1, Content: hubtest.Random(3, 20*testPiece)})
	s.Connections, s.patience.attempts = 1, 1
	wrong := hubtest.Random(5, 20*testPiece)
	s.hub.Misbehave(faulty(func(n int, r *hubtest.Reply) {
		r.Body = wrong[r.Begin : int(r.Begin)+len(r.Body)]
		r.Cut = len(r.Body) / 2
	}))
	if _, err := Pull(context.Background(), s.Options); err == nil {
		t.Fatal("Pull from a server that stops: no error")
	}
	s.hub.Misbehave(nil)
	s.pull()
}

// TestClockJumps pulls under a clock that is somewhere else each time it is
// looked at.
func TestClockJumps(t *testing.T) {
	s := newSite(t)
	var looks atomic.Uint64
	s.now = func() time.Time {
		return time.Unix(int64(looks.Add(1)*7_919_000_003%6_000_000_000), 0) // 1970 to 2160
	}
	s.hub.Misbehave(failing(http.StatusServiceUnavailable))
	s.pull()
	if bad := s.verify(); len(bad) > 0 {
		t.Errorf("Verify finds %v", bad)
	}
	for _, e := range s.events {
		if e.Rate < 0 || e.Left < 0 || e.Left > longest {
			t.Errorf("rate %v, left %v", e.Rate, e.Left)
		}
	}
}

func TestTooManyConnections(t *testing.T) {
	s := newSite(t)
	s.Connections = -1
	if _, err := Pull(context.Background(), s.Options); err == nil {
		t.Error("a pull over -1 connections: no error")
	}
}
