package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// event is one server-sent event.
type event struct{ name, data string }

// streaming turns a request into one for a stream with usage.
func streaming(body string) string {
	return strings.TrimSuffix(body, "}") + `,"stream":true,"stream_options":{"include_usage":true}}`
}

// events asks for a stream and takes it apart, comments left out.
func (s *session) events(path, body string) ([]event, error) {
	a, err := s.post(path, body)
	if err != nil {
		return nil, err
	}
	if kind := a.header.Get("Content-Type"); a.status != http.StatusOK || !strings.HasPrefix(kind, "text/event-stream") {
		return nil, a.wrong("want 200 and a stream of events")
	}
	return parseEvents(string(a.body))
}

func parseEvents(body string) (list []event, err error) {
	var e event
	for line := range strings.Lines(strings.ReplaceAll(body, "\r\n", "\n")) {
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "" && e.data != "":
			list = append(list, e)
			e = event{}
		case line == "", field == "", field == "id", field == "retry":
		case field == "event":
			e.name = value
		case field == "data":
			e.data += value
		default:
			return nil, fmt.Errorf("the stream has the line %q, want fields of server-sent events", line)
		}
	}
	if e.data != "" {
		return nil, fmt.Errorf("the stream ends within the event %q, want an empty line after it", e.data)
	}
	return list, nil
}

// chunk is an event of a chat stream.
type chunk struct {
	ID      string
	Object  string
	Created int64
	Model   string
	Choices []struct {
		Index        int
		Delta        message
		FinishReason *string `json:"finish_reason"`
	}
	Usage *usage
	Error any
}

// chatStream asks for a stream, checks what holds for each and returns the
// completion that it makes.
func (s *session) chatStream(body string) (*chatAnswer, error) {
	events, err := s.events(chatPath, body)
	if err != nil {
		return nil, err
	}
	c, err := assemble(events)
	if err != nil {
		return nil, err
	}
	return c, c.well("chat.completion.chunk")
}

// assemble puts a chat stream together.
func assemble(events []event) (*chatAnswer, error) {
	if len(events) == 0 || events[len(events)-1].data != "[DONE]" {
		return nil, errors.New("the stream does not end with [DONE]")
	}
	var c chatAnswer
	for i, e := range events[:len(events)-1] {
		var ch chunk
		if err := json.Unmarshal([]byte(e.data), &ch); err != nil {
			return nil, fmt.Errorf("event %d is %q, want JSON: %w", i, e.data, err)
		}
		if ch.Error != nil {
			return nil, fmt.Errorf("the stream has an error: %s", e.data)
		}
		if i == 0 {
			c.ID, c.Object, c.Created, c.Model = ch.ID, ch.Object, ch.Created, ch.Model
		}
		if ch.ID != c.ID || ch.Object != c.Object || ch.Model != c.Model || ch.Created != c.Created {
			return nil, fmt.Errorf("event %d has another id, object, model or time than the first", i)
		}
		if c.Usage != nil && len(ch.Choices) > 0 {
			return nil, errors.New("choices come after the usage")
		}
		if err := c.add(&ch); err != nil {
			return nil, fmt.Errorf("event %d: %w", i, err)
		}
	}
	return &c, nil
}

// add puts an event's deltas at the end of what came before.
func (c *chatAnswer) add(ch *chunk) error {
	if ch.Usage != nil {
		if len(ch.Choices) > 0 || c.Usage != nil {
			return errors.New("usage comes with a choice, or twice")
		}
		c.Usage = ch.Usage
	}
	for _, d := range ch.Choices {
		if d.Index < 0 || d.Index > len(c.Choices) {
			return fmt.Errorf("choice %d is out of turn", d.Index)
		}
		if d.Index == len(c.Choices) {
			empty := ""
			c.Choices = append(c.Choices, choice{Index: d.Index, Message: message{Content: &empty}})
		}
		to := &c.Choices[d.Index]
		if to.FinishReason != nil {
			return errors.New("a choice goes on after its finish reason, or has two")
		}
		to.FinishReason = d.FinishReason
		if d.Delta.Role != "" {
			to.Message.Role = d.Delta.Role
		}
		if d.Delta.Content != nil {
			*to.Message.Content += *d.Delta.Content
		}
		to.Message.ReasoningContent += d.Delta.ReasoningContent
		if err := to.Message.addCalls(d.Delta.ToolCalls); err != nil {
			return err
		}
	}
	return nil
}

func (m *message) addCalls(deltas []toolCall) error {
	for _, d := range deltas {
		switch {
		case d.Index == nil || *d.Index < 0 || *d.Index > len(m.ToolCalls):
			return errors.New("the delta of a call has no index, or one out of turn")
		case *d.Index == len(m.ToolCalls):
			if d.ID == "" || d.Function.Name == "" {
				return errors.New("a call begins without its id and name")
			}
			m.ToolCalls = append(m.ToolCalls, d)
			continue
		}
		call := &m.ToolCalls[*d.Index]
		if d.ID != "" && d.ID != call.ID {
			return errors.New("a call changes its id")
		}
		call.Function.Arguments += d.Function.Arguments
	}
	return nil
}

func streamChecks() []check {
	all := []check{
		{"streams", "a stream is the whole answer", streamEqualsWhole(ask(""))},
		{"streams", "a stream that its limit ends", streamEqualsWhole(ask(`"max_tokens":3`))},
		{"streams", "characters of several bytes stay whole", streamEqualsWhole(askFor(`[{"role":"user","content":"Repeat exactly: 👩‍👩‍👧‍👦 漢字 é"}]`, ""))},
		{"streams", "n choices", streamEqualsWhole(ask(`"n":2`))},
		{"streams", "an unknown model is an error before the headers", beforeHeaders(strings.Replace(ask(`"stream":true`), modelMark, "nobody-has-this", 1), refusal{status: 404, code: "model_not_found"})},
		{"streams", "an unknown field is an error before the headers", beforeHeaders(ask(`"stream":true,"frobnicate":1`), refusal{status: 400, param: "frobnicate"})},
		{"streams", "a client that goes away", clientGoes},
	}
	for _, o := range []struct {
		name, options string
		usage         bool
	}{
		{"no stream_options", ``, false},
		{"stream_options null", `,"stream_options":null`, false},
		{"stream_options {}", `,"stream_options":{}`, false},
		{"include_usage false", `,"stream_options":{"include_usage":false}`, false},
		{"include_usage true", `,"stream_options":{"include_usage":true}`, true},
	} {
		all = append(all, check{"streams", o.name, func(s *session) error { return s.usageIn(o.options, o.usage) }})
	}
	return all
}

// streamEqualsWhole wants the same from a request both ways.
func streamEqualsWhole(body string) func(*session) error {
	return func(s *session) error {
		whole, err := s.chat(body)
		if err != nil {
			return err
		}
		streamed, err := s.chatStream(streaming(body))
		if err != nil {
			return err
		}
		return sameAnswer(streamed, whole)
	}
}

func sameAnswer(streamed, whole *chatAnswer) error {
	if len(streamed.Choices) != len(whole.Choices) {
		return fmt.Errorf("%d choices streamed, %d whole", len(streamed.Choices), len(whole.Choices))
	}
	for i := range whole.Choices {
		a, b := &streamed.Choices[i], &whole.Choices[i]
		content := ""
		if b.Message.Content != nil {
			content = *b.Message.Content
		}
		if *a.Message.Content != content || a.Message.ReasoningContent != b.Message.ReasoningContent || *a.FinishReason != *b.FinishReason {
			return fmt.Errorf("streamed %q (%s), whole %q (%s)", *a.Message.Content, *a.FinishReason, content, *b.FinishReason)
		}
	}
	a, b := streamed.Usage, whole.Usage
	if a.PromptTokens != b.PromptTokens || a.CompletionTokens != b.CompletionTokens {
		return fmt.Errorf("streamed with usage %+v, whole with %+v", *a, *b)
	}
	return nil
}

// usageIn checks that usage is in the last event alone, or nowhere.
func (s *session) usageIn(options string, want bool) error {
	events, err := s.events(chatPath, strings.TrimSuffix(ask(`"max_tokens":2`), "}")+`,"stream":true`+options+`}`)
	if err != nil {
		return err
	}
	c, err := assemble(events)
	if err != nil {
		return err
	}
	if (c.Usage != nil) != want {
		return fmt.Errorf("usage in the stream: %t, want %t", c.Usage != nil, want)
	}
	return nil
}

func beforeHeaders(body string, want refusal) func(*session) error {
	return func(s *session) error { return s.refuse(chatPath, body, want) }
}

// clientGoes leaves a stream after its first bytes. The next request must not
// wait for the rest.
func clientGoes(s *session) error {
	r, err := s.request(http.MethodPost, chatPath, streaming(ask(`"max_tokens":1000`)), http.Header{"Content-Type": {"application/json"}})
	if err != nil {
		return err
	}
	response, err := s.client.Do(r)
	if err != nil {
		return err
	}
	_, err = response.Body.Read(make([]byte, 1))
	response.Body.Close()
	if err != nil {
		return fmt.Errorf("the stream has no first byte: %w", err)
	}
	_, err = s.chat(ask(`"max_tokens":1`))
	return err
}
