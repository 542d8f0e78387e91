// Package hubtest is a server of files for tests that answers like the Hugging
// Face Hub, and misbehaves as a test wants it to.
package hubtest

import (
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The repository that a Hub has.
const (
	Repository = "calla-tests/twin"
	Revision   = "0123456789abcdef0123456789abcdef01234567"
)

// Hub serves files at /owner/name/resolve/revision/name, in ranges.
type Hub struct {
	*httptest.Server
	// Token is what requests must carry, if it is not empty.
	Token string

	files []File
	mu    sync.Mutex
	fault func(*Reply)
	seen  []Request
	count map[string]int
}

// File is a file of the repository.
type File struct {
	Name    string
	Content []byte
	// ByGit pins the file by the digest that git has of it, as the Hub publishes
	// it of small files.
	ByGit bool
}

// Request is a request that the hub was sent.
type Request struct {
	Host, Path    string
	Range         string
	Authorization string
	Encoding      string // Accept-Encoding
}

// Reply is what the hub is about to answer to a request for a file.
type Reply struct {
	Request *http.Request
	Name    string
	N       int // which request for this file it is, from 1, those for one byte not counted
	Probe   bool
	Begin   int64 // what was asked for
	Content []byte

	Status int
	Header http.Header
	Body   []byte
	// Cut ends the connection after that many bytes of the body, unless it is
	// negative.
	Cut int
	// Before is called before every 64 KiB of the body, with the bytes sent.
	Before func(sent int)
	// Delay comes before anything is sent.
	Delay time.Duration
	// Trickle sends single bytes and waits after each.
	Trickle time.Duration
}

// New starts a hub, which ends with the test.
func New(t testing.TB, files ...File) *Hub {
	h := &Hub{files: files, count: map[string]int{}}
	h.Server = httptest.NewServer(h)
	// Tests end connections in the middle; the server need not tell of it.
	t.Cleanup(func() { h.CloseClientConnections(); h.Close() })
	return h
}

// Random returns n bytes that depend on the seed.
func Random(seed uint64, n int) []byte {
	var key [32]byte
	copy(key[:], strconv.FormatUint(seed, 10))
	b := make([]byte, n)
	rand.NewChaCha8(key).Read(b)
	return b
}

// Misbehave makes the hub call fault for every reply before it is sent, one call
// at a time; nil makes it behave.
func (h *Hub) Misbehave(fault func(*Reply)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fault = fault
}

// Files returns the files of the repository.
func (h *Hub) Files() []File { return h.files }

// Manifest returns the manifest of the files.
func (h *Hub) Manifest() []byte {
	type pinned struct {
		Name    string `json:"name"`
		Size    int    `json:"size"`
		SHA256  string `json:"sha256,omitempty"`
		GitSHA1 string `json:"git_sha1,omitempty"`
	}
	var files []pinned
	for _, f := range h.files {
		p := pinned{Name: f.Name, Size: len(f.Content)}
		if f.ByGit {
			blob := append(fmt.Appendf(nil, "blob %d\x00", len(f.Content)), f.Content...)
			p.GitSHA1 = fmt.Sprintf("%x", sha1.Sum(blob))
		} else {
			p.SHA256 = fmt.Sprintf("%x", sha256.Sum256(f.Content))
		}
		files = append(files, p)
	}
	text, err := json.Marshal(map[string]any{"repository": Repository, "revision": Revision, "files": files})
	if err != nil {
		panic(err)
	}
	return text
}

// Requests returns the requests so far.
func (h *Hub) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]Request(nil), h.seen...)
}

// Forget empties the list of requests.
func (h *Hub) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = nil
	clear(h.count)
}

func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.seen = append(h.seen, Request{r.Host, r.URL.Path, r.Header.Get("Range"), r.Header.Get("Authorization"), r.Header.Get("Accept-Encoding")})
	reply := h.reply(r)
	if h.fault != nil {
		h.fault(reply)
	}
	h.mu.Unlock()
	reply.send(w)
}

// reply makes the right answer.
func (h *Hub) reply(r *http.Request) *Reply {
	p := &Reply{Request: r, Status: http.StatusNotFound, Header: http.Header{}, Cut: -1}
	if h.Token != "" && r.Header.Get("Authorization") != "Bearer "+h.Token {
		p.Status = http.StatusUnauthorized
		return p
	}
	name, ok := strings.CutPrefix(r.URL.Path, "/"+Repository+"/resolve/"+Revision+"/")
	for _, f := range h.files {
		if ok && f.Name == name {
			p.Name, p.Content = name, f.Content
			p.ranged(r.Header.Get("Range"))
			p.Header.Set("ETag", fmt.Sprintf(`"%s-%d"`, name, len(f.Content)))
		}
	}
	if !p.Probe {
		h.count[p.Name]++
	}
	p.N = h.count[p.Name]
	return p
}

// ranged answers a request for bytes=a-b of the content.
func (p *Reply) ranged(text string) {
	var end int64
	size := int64(len(p.Content))
	switch n, _ := fmt.Sscanf(text, "bytes=%d-%d", &p.Begin, &end); {
	case n != 2 || end < p.Begin:
		p.Whole()
	case p.Begin >= size:
		p.Status = http.StatusRequestedRangeNotSatisfiable
		p.Header.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
	default:
		end = min(end, size-1)
		p.Status = http.StatusPartialContent
		p.Body = p.Content[p.Begin : end+1]
		p.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", p.Begin, end, size))
		p.Probe = end == 0
	}
}

// Whole makes the reply the whole file, as a server does that knows no ranges.
func (p *Reply) Whole() {
	p.Status, p.Body = http.StatusOK, p.Content
	p.Header.Del("Content-Range")
}

// Error makes the reply an error.
func (p *Reply) Error(status int) {
	p.Status, p.Body = status, []byte(http.StatusText(status))
	p.Header.Del("Content-Range")
}

// Page makes the reply a web page, as a network sends it that wants a log-in.
func (p *Reply) Page() {
	p.Status, p.Body = http.StatusOK, []byte("<!doctype html><title>Welcome to the guest network</title>")
	p.Header = http.Header{"Content-Type": {"text/html; charset=utf-8"}}
}

// Redirect sends the client to another server, to the same path.
func (p *Reply) Redirect(base string) {
	p.Status, p.Body = http.StatusFound, nil
	p.Header = http.Header{"Location": {base + p.Request.URL.Path + "?signature=secret"}}
}

func (p *Reply) send(w http.ResponseWriter) {
	if p.wait(p.Delay) != nil {
		return
	}
	for k, v := range p.Header {
		w.Header()[k] = v
	}
	if w.Header().Get("Content-Length") == "" {
		w.Header().Set("Content-Length", strconv.Itoa(len(p.Body)))
	}
	w.WriteHeader(p.Status)
	if p.Before != nil {
		w.(http.Flusher).Flush()
	}
	end := len(p.Body)
	if p.Cut >= 0 {
		end = min(end, p.Cut)
	}
	if err := p.write(w, p.Body[:end]); err != nil {
		return
	}
	if p.Cut >= 0 {
		panic(http.ErrAbortHandler)
	}
}

// write sends a body as the reply wants it.
func (p *Reply) write(w http.ResponseWriter, body []byte) error {
	step := 64 << 10
	switch {
	case p.Trickle > 0:
		step = 1
	case p.Before == nil:
		step = len(body)
	}
	for sent := 0; sent < len(body); sent += step {
		if p.Before != nil {
			p.Before(sent)
		}
		if _, err := w.Write(body[sent:min(sent+step, len(body))]); err != nil {
			return err
		}
		if p.Trickle > 0 || p.Cut >= 0 || p.Before != nil {
			w.(http.Flusher).Flush()
		}
		if err := p.wait(p.Trickle); err != nil {
			return err
		}
	}
	return nil
}

// wait waits, or until the client is gone.
func (p *Reply) wait(d time.Duration) error {
	if d == 0 {
		return nil
	}
	select {
	case <-time.After(d):
		return nil
	case <-p.Request.Context().Done():
		return p.Request.Context().Err()
	}
}
