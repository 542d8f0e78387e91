package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
	s := &Server{Name: name, URL: at, Key: key, Model: model, Chat: chat, Client: &http.Client{}}
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

// usage is what a server says of a request's tokens.
type usage struct {
	Prompt    int `json:"prompt_tokens"`
	Completed int `json:"completion_tokens"`
	Details   struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// chunk is one event of a stream of either kind.
type chunk struct {
	Choices []struct {
		Text  string
		Delta struct {
			Content          string
			ReasoningContent string `json:"reasoning_content"`
			Reasoning        string
		}
	}
	Usage *usage
	Error json.RawMessage
}

func (c *chunk) text() string {
	var all string
	for _, x := range c.Choices {
		all += x.Text + x.Delta.Content + x.Delta.ReasoningContent + x.Delta.Reasoning
	}
	return all
}

// maxStream bounds what is read of an answer, in bytes.
const maxStream = 64 << 20

// Ask has a text continued, or answered, and measures that. The prefill is the
// time to the first token: HTTP tells no more.
func (s *Server) Ask(ctx context.Context, text string, tokens int) (Sample, error) {
	body := map[string]any{
		"model": s.Model, "max_tokens": tokens, "temperature": 0,
		"stream": true, "stream_options": map[string]any{"include_usage": true},
	}
	path := "/v1/completions"
	if s.Chat {
		path, body["messages"] = "/v1/chat/completions", []any{map[string]any{"role": "user", "content": text}}
	} else {
		body["prompt"] = text
	}
	encoded, err := json.Marshal(body)
	if err != nil {
		return Sample{}, err
	}
	before, known := s.Busy(ctx)
	start := time.Now()
	response, err := s.do(ctx, http.MethodPost, path, encoded)
	if err != nil {
		return Sample{}, err
	}
	defer response.Body.Close()
	sample, err := s.read(response.Body, start)
	if err == nil && known {
		after, _ := s.Busy(ctx)
		sample.Others = before + after
	}
	return sample, err
}

// heard is what a stream said so far.
type heard struct {
	first, last time.Time // of text
	usage       *usage
}

// read times the events of a stream.
func (s *Server) read(stream io.Reader, start time.Time) (Sample, error) {
	var h heard
	lines := bufio.NewReader(io.LimitReader(stream, maxStream))
	for done := false; !done; {
		line, err := lines.ReadBytes('\n')
		now := time.Now()
		if err != nil && !errors.Is(err, io.EOF) {
			return Sample{}, s.fault("the stream broke off: %v", err)
		}
		done = err != nil
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			break
		}
		if err := h.event(data, now); err != nil {
			return Sample{}, s.fault("%w", err)
		}
	}
	switch {
	case h.usage == nil || h.usage.Prompt <= 0:
		return Sample{}, s.fault("the stream has no usage at its end, so that tokens can't be counted: take a version that honours stream_options.include_usage, or the other API with or without --chat")
	case h.first.IsZero():
		return Sample{}, s.fault("the answer is empty, so that no token can be timed: ask with or without --chat")
	}
	first := h.first.Sub(start)
	return Sample{
		Prompt: h.usage.Prompt, Cached: h.usage.Details.Cached, Generated: h.usage.Completed,
		FirstToken: first, Prefill: first, Decode: h.last.Sub(h.first),
	}, nil
}

// event takes the data of one event.
func (h *heard) event(data []byte, now time.Time) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("an event of the stream is no JSON: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return fmt.Errorf("the stream has an error: %.300s", c.Error)
	}
	if c.Usage != nil {
		h.usage = c.Usage
	}
	if c.text() != "" {
		if h.first.IsZero() {
			h.first = now
		}
		h.last = now
	}
	return nil
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
		return nil, s.fault("no answer: %w; is it running?", err)
	}
	if response.StatusCode != http.StatusOK {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300)) // of an error that is told anyway
		return nil, s.fault("%s was answered %d%s: %s", path, response.StatusCode, remedy(response.StatusCode), bytes.TrimSpace(text))
	}
	return response, nil
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

func (s *Server) get(ctx context.Context, path string, into any) error {
	response, err := s.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if err := json.NewDecoder(io.LimitReader(response.Body, 16<<20)).Decode(into); err != nil {
		return s.fault("%s is no JSON: %w", path, err)
	}
	return nil
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
