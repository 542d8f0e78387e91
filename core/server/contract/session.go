package contract

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"
)

// session talks to one server for one check.
type session struct {
	ctx    context.Context
	root   string // URL
	host   string
	plain  bool // HTTP without TLS: bytes can be sent as they are
	key    string
	model  string
	client *http.Client
}

// answer is what came back.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 16 << 20

// modelMark stands for the model's id in the bodies of tables.
const modelMark = "MODEL"

// fill puts the model's id into a body.
func (s *session) fill(body string) string {
	id, _ := json.Marshal(s.model)
	return strings.Replace(body, `"`+modelMark+`"`, string(id), 1)
}

func (s *session) post(path, body string) (*answer, error) {
	return s.send(http.MethodPost, path, body, http.Header{"Content-Type": {"application/json"}})
}

func (s *session) get(path string) (*answer, error) {
	return s.send(http.MethodGet, path, "", nil)
}

// send makes a request with the key, and reads the whole answer.
func (s *session) send(method, path, body string, header http.Header) (*answer, error) {
	r, err := s.request(method, path, body, header)
	if err != nil {
		return nil, err
	}
	response, err := s.client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("the answer ended early: %w", err)
	}
	if !utf8.Valid(data) {
		return nil, errors.New("the answer is not UTF-8")
	}
	return &answer{response.StatusCode, response.Header, data}, nil
}

func (s *session) request(method, path, body string, header http.Header) (*http.Request, error) {
	r, err := http.NewRequestWithContext(s.ctx, method, s.root+path, strings.NewReader(s.fill(body)))
	if err != nil {
		return nil, err
	}
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	for name, values := range header {
		r.Header[name] = values
	}
	return r, nil
}

// raw sends bytes as they are, on a connection of their own, and reads one
// answer. HOST in them stands for the server's, KEY for the header of the key.
func (s *session) raw(text string) (*answer, error) {
	if !s.plain {
		return nil, skipped("bytes can be sent as they are over http only")
	}
	conn, err := (&net.Dialer{}).DialContext(s.ctx, "tcp", dialable(s.host))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(30 * time.Second))
	key := ""
	if s.key != "" {
		key = "Authorization: Bearer " + s.key + "\r\n"
	}
	text = strings.NewReplacer("HOST", s.host, "KEY\r\n", key, `"`+modelMark+`"`, s.fill(`"`+modelMark+`"`)).Replace(text)
	if _, err := io.WriteString(conn, text); err != nil {
		return nil, fmt.Errorf("the server does not read: %w", err)
	}
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return nil, fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	data, _ := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	return &answer{response.StatusCode, response.Header, data}, nil
}

// dialable returns a host with a port.
func dialable(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), "80")
}

// into decodes an answer that must be a success.
func (a *answer) into(v any) error {
	if a.status != http.StatusOK {
		return a.wrong("want 200")
	}
	if err := json.Unmarshal(a.body, v); err != nil {
		return a.wrong("want JSON of another form: " + err.Error())
	}
	return nil
}

// wrong is an error that shows an answer beside what was wanted of it.
func (a *answer) wrong(want string) error {
	return fmt.Errorf("status %d with %s; %s", a.status, a.short(), want)
}

// short returns the beginning of the body.
func (a *answer) short() string {
	const most = 200
	body := strings.ToValidUTF8(string(bytes.TrimSpace(a.body)), "?")
	if body == "" {
		return "an empty body"
	}
	if len(body) > most {
		return strings.ToValidUTF8(body[:most], "") + "…"
	}
	return body
}

// absent reports whether the answer says that there is no such endpoint.
func (a *answer) absent() bool {
	return a.status == http.StatusNotFound || a.status == http.StatusMethodNotAllowed || a.status == http.StatusNotImplemented
}

// have returns a skipped where the endpoint is not there. A body that nobody
// takes tells it from a fault in the request.
func (s *session) have(path string) error {
	a, err := s.post(path, "{}")
	if err != nil {
		return err
	}
	if a.absent() && !strings.Contains(string(a.body), "model_not_found") {
		return skipped("the server has no " + path)
	}
	return nil
}
