package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Server is a server of OpenAI's API, asked for streams of completions or of
// chat completions.
type Server struct {
	Name   string // for people
	URL    string // without /v1
	Key    string // empty where it needs none
	Model  string
	Chat   bool
	Client *http.Client
	// Patience is how long the first token of an answer may take, and how long all
	// the others, 0 without end.
	Patience time.Duration
	// Tell, where not nil, is told from time to time whom a request waits for. It
	// may be called by any goroutine.
	Tell func(line string)

	also map[string]any // fields of each request beside those of all servers
}

// newClient returns one that follows no redirects: the server at the other end
// would be another than the one that is named, and would be sent the key.
func newClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ReadBufferSize = readBuffer
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// base returns the address of a server without /v1 at its end.
func base(name, address string) (string, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("bench: %s is at %q, want an address such as http://127.0.0.1:8080", name, address)
	}
	return strings.TrimSuffix(strings.TrimSuffix(u.String(), "/"), "/v1"), nil
}

// CheckAddress refuses what can't be the address of a server.
func CheckAddress(name, address string) error {
	_, err := base(name, address)
	return err
}

// NewServer returns a server at an address, with or without /v1 at its end. The
// model is the first that it lists where none is named.
func NewServer(ctx context.Context, name, address, key, model string, chat bool) (*Server, error) {
	at, err := base(name, address)
	if err != nil {
		return nil, err
	}
	s := &Server{Name: name, URL: at, Key: key, Model: model, Chat: chat, Client: newClient()}
	if s.Model != "" {
		return s, nil
	}
	var list struct{ Data []struct{ ID string } }
	if err := s.get(ctx, "/v1/models", &list); err != nil {
		return nil, fmt.Errorf("%w; where its model is named it needs no list", err)
	}
	if len(list.Data) == 0 {
		return nil, fmt.Errorf("bench: %s at %s lists no model: name one", name, s.URL)
	}
	s.Model = list.Data[0].ID
	return s, nil
}

// Busy returns how many requests a Calla has, and false for other servers, which
// have no one way to say it.
func (s *Server) Busy(ctx context.Context) (int, bool) {
	var status struct {
		Server string
		Queue  struct{ Running, Waiting int }
	}
	if err := s.get(ctx, "/v1/status", &status); err != nil || status.Server != "calla" {
		return 0, false
	}
	return status.Queue.Running + status.Queue.Waiting, true
}

// Ask has a text continued, or answered, and measures that. The prefill is the
// time to the first token: HTTP tells no more. An answer without text is errEmpty,
// and its sample has the counts alone.
func (s *Server) Ask(ctx context.Context, text string, tokens int) (Sample, error) {
	path, body, err := s.request(text, tokens)
	if err != nil {
		return Sample{}, err
	}
	before, known := s.Busy(ctx)
	waiting, v := s.watchOver(ctx)
	defer v.end()
	start := time.Now()
	response, err := s.do(waiting, http.MethodPost, path, body)
	if err != nil {
		return Sample{}, v.explain(err)
	}
	defer response.Body.Close()
	sample, err := s.read(response.Body, start, tokens, v.heard)
	if err == nil && known {
		after, _ := s.Busy(ctx)
		sample.Others = before + after
	}
	return sample, v.explain(err)
}

// request returns where to ask and what.
func (s *Server) request(text string, tokens int) (path string, encoded []byte, err error) {
	body := map[string]any{
		"model": s.Model, "max_tokens": tokens, "temperature": 0,
		"stream": true, "stream_options": map[string]any{"include_usage": true},
	}
	path = "/v1/completions"
	if s.Chat {
		path, body["messages"] = "/v1/chat/completions", []any{map[string]any{"role": "user", "content": text}}
	} else {
		body["prompt"] = text
	}
	maps.Copy(body, s.also)
	encoded, err = json.Marshal(body)
	return path, encoded, err
}

// do sends a request and returns an answer of status 200.
func (s *Server) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	if s.Key != "" {
		request.Header.Set("Authorization", "Bearer "+s.Key)
	}
	response, err := s.Client.Do(request)
	if err != nil {
		return nil, s.fault("no answer: %w; is it running?", shownError{err})
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer response.Body.Close()
	if to := response.Header.Get("Location"); to != "" && response.StatusCode/100 == 3 {
		return nil, s.fault("%s was answered %d, a redirect to %s, which is not followed: name the address that answers itself", path, response.StatusCode, Shown(to))
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxShown)) // of an error that is told anyway
	return nil, s.fault("%s was answered %d%s: %s", path, response.StatusCode, remedy(response.StatusCode), Shown(string(text)))
}

// remedy says what to do about a status.
func remedy(status int) string {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return " (give its key)"
	case http.StatusNotFound:
		return " (name another model, or take the other API with or without --chat)"
	case http.StatusBadRequest:
		return " (is the length within its context?)"
	}
	return ""
}

// The most that is read of an answer that is no stream, in bytes, and the most
// time that it may take.
const (
	maxBody  = 16 << 20
	bodyTime = time.Minute
)

// ask sends a request and decodes the JSON of its answer.
func (s *Server) ask(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, cancel := context.WithTimeout(ctx, bodyTime)
	defer cancel()
	response, err := s.do(ctx, method, path, body)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody+1))
	switch {
	case err != nil:
		return s.fault("%s broke off: %w", path, shownError{err})
	case len(text) > maxBody:
		return s.fault("%s is too long: more than %d MiB", path, maxBody>>20)
	}
	if err := json.Unmarshal(text, into); err != nil {
		return s.fault("%s is no JSON: %w", path, err)
	}
	return nil
}

func (s *Server) get(ctx context.Context, path string, into any) error {
	return s.ask(ctx, http.MethodGet, path, nil, into)
}

func (s *Server) fault(format string, args ...any) error {
	return fmt.Errorf("bench: %s at %s: "+format, append([]any{s.Name, s.URL}, args...)...)
}

// Context returns the longest context of a Calla's model.
func (s *Server) Context(ctx context.Context) (int, error) {
	var list struct {
		Data []struct {
			Context int `json:"max_model_len"`
		}
	}
	if err := s.get(ctx, "/v1/models", &list); err != nil {
		return 0, err
	}
	if len(list.Data) == 0 || list.Data[0].Context == 0 {
		return 0, s.fault("its list of models tells no context length: name one with --max-seq")
	}
	return list.Data[0].Context, nil
}
