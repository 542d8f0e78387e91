package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// Stream is how an answer came over HTTP.
type Stream struct {
	Asked  int `json:"asked_tokens"` // at most
	Events int `json:"events"`       // with text
	// First is how many of the events came with the first, and Largest how many
	// came together, at most.
	First   int `json:"first_lump"`
	Largest int `json:"largest_lump"`
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

// The most that is read of an answer and of one of its lines, and what is read at
// once, in bytes.
const (
	maxStream  = 64 << 20
	maxLine    = 1 << 20
	readBuffer = 64 << 10
)

// errEmpty is an answer of which no token can be timed.
var errEmpty = errors.New("the answer is empty, so that no token can be timed: ask with or without --chat")

// arrivals notes when what was read came, which is before it is parsed.
type arrivals struct {
	stream io.Reader
	at     time.Time // of the last read
}

func (a *arrivals) Read(p []byte) (int, error) {
	n, err := a.stream.Read(p)
	a.at = time.Now()
	return n, err
}

// heard is what a stream said so far.
type heard struct {
	texts []time.Time // when each event with text came
	usage *usage
}

// read times the events of a stream that was asked for so many tokens, and calls
// token at each.
func (s *Server) read(stream io.Reader, start time.Time, tokens int, token func()) (Sample, error) {
	var h heard
	limit := &io.LimitedReader{R: stream, N: maxStream}
	in := &arrivals{stream: limit}
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, readBuffer), maxLine)
	for lines.Scan() {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(lines.Bytes()), []byte("data:"))
		if data = bytes.TrimSpace(data); !ok || len(data) == 0 {
			continue
		}
		if string(data) == "[DONE]" {
			break
		}
		n := len(h.texts)
		if err := h.event(data, in.at); err != nil {
			if lines.Err() != nil || limit.N <= 0 {
				break // the line is the part of one that came
			}
			return Sample{}, s.fault("%w", err)
		}
		if len(h.texts) > n {
			token()
		}
		if most := mostEvents(tokens); len(h.texts) > most {
			return Sample{}, s.fault("the stream is too long: more than %d events of text where %d tokens were asked for", most, tokens)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return Sample{}, s.fault("a line of the stream is too long: more than %d MiB", maxLine>>20)
	case err != nil:
		return Sample{}, s.fault("the stream broke off: %w", shownError{err})
	case limit.N <= 0:
		return Sample{}, s.fault("the stream is too long: more than %d MiB", maxStream>>20)
	}
	return s.sample(h, start, tokens)
}

// mostEvents bounds the events with text of an answer. Servers may cut a token in
// two, and add some at the end.
func mostEvents(tokens int) int { return 4*tokens + 16 }

// sample is what a stream says as a whole.
func (s *Server) sample(h heard, start time.Time, tokens int) (Sample, error) {
	if h.usage == nil || h.usage.Prompt <= 0 {
		return Sample{}, s.fault("the stream has no usage at its end, so that tokens can't be counted: take a version that honours stream_options.include_usage, or the other API with or without --chat")
	}
	x := &Stream{Asked: tokens, Events: len(h.texts)}
	x.First, x.Largest = lumps(h.texts)
	sample := Sample{
		Prompt: h.usage.Prompt, Cached: h.usage.Details.Cached, Generated: h.usage.Completed,
		Stream: x,
	}
	if len(h.texts) == 0 {
		return sample, s.fault("%w", errEmpty)
	}
	first := h.texts[0]
	sample.FirstToken = first.Sub(start)
	sample.Prefill, sample.Decode = sample.FirstToken, h.texts[len(h.texts)-1].Sub(first)
	return sample, nil
}

// event takes the data of one event.
func (h *heard) event(data []byte, at time.Time) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("an event of the stream is no JSON: %w", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return fmt.Errorf("the stream has an error: %s", Shown(string(c.Error)))
	}
	if c.Usage != nil {
		h.usage = c.Usage
	}
	if c.text() != "" {
		h.texts = append(h.texts, at)
	}
	return nil
}
