package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

const messagesPath = "/v1/messages"

func claude(messages, more string) string {
	return fmt.Sprintf(`{"model":%q,"max_tokens":400,"messages":%s%s}`, modelMark, messages, more)
}

var claudeAsk = fmt.Sprintf(`[{"role":"user","content":%q}]`, question)

// claudeMessage is an answer of Anthropic's messages.
type claudeMessage struct {
	ID         string
	Type       string
	Role       string
	Content    []claudeBlock
	StopReason *string `json:"stop_reason"`
	Usage      claudeUsage
}

type claudeBlock struct {
	Type     string
	Text     string
	Thinking string
	ID       string
	Name     string
	Input    json.RawMessage
}

type claudeUsage struct {
	Input     int `json:"input_tokens"`
	CacheRead int `json:"cache_read_input_tokens"`
	CacheMade int `json:"cache_creation_input_tokens"`
	Output    int `json:"output_tokens"`
}

func (u claudeUsage) prompt() int { return u.Input + u.CacheRead + u.CacheMade }

// of joins what blocks of one type say.
func (m *claudeMessage) of(kind string) string {
	var all strings.Builder
	for _, b := range m.Content {
		if b.Type == kind {
			all.WriteString(b.Text + b.Thinking)
		}
	}
	return all.String()
}

func (s *session) claude(body string) (*claudeMessage, error) {
	if err := s.have(messagesPath); err != nil {
		return nil, err
	}
	a, err := s.post(messagesPath, body)
	if err != nil {
		return nil, err
	}
	var m claudeMessage
	if err := a.into(&m); err != nil {
		return nil, err
	}
	if m.ID == "" || m.Type != "message" || m.Role != "assistant" || len(m.Content) == 0 || m.StopReason == nil || m.Usage.Output <= 0 {
		return nil, a.wrong("want a message of the assistant with an id, content, a stop reason and usage")
	}
	return &m, nil
}

func messagesChecks() []check {
	return []check{
		{"messages", "the answer is that of chat completions", func(s *session) error {
			m, err := s.claude(claude(claudeAsk, ""))
			if err != nil {
				return err
			}
			c, err := s.chat(ask(`"max_tokens":400`))
			if err == nil && m.of("text") != c.text() {
				err = fmt.Errorf("%q, chat completions say %q", m.of("text"), c.text())
			}
			return err
		}},
		{"messages", "a stream is the whole answer", streamedMessage(claude(claudeAsk, ""))},
		{"messages", "a thought, streamed too", func(s *session) error {
			body := claude(claudeAsk, `,"temperature":0,"thinking":{"type":"enabled","budget_tokens":100}`)
			m, err := s.claude(body)
			if err != nil {
				return err
			}
			if m.Content[0].Type != "thinking" || m.of("thinking") == "" {
				return fmt.Errorf("content %+v, want a thought first", m.Content)
			}
			return streamedMessage(body)(s)
		}},
		{"messages", "a call of a tool, streamed too", func(s *session) error {
			body := claude("["+weatherAsk+"]", `,"tools":[{"name":"get_weather","description":"Get the weather of a city.","input_schema":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}]`)
			m, err := s.claude(body)
			if err != nil {
				return err
			}
			if *m.StopReason != "tool_use" {
				return skipped("the model did not call")
			}
			b := m.Content[len(m.Content)-1]
			if b.Type != "tool_use" || b.ID == "" || b.Name != "get_weather" || !json.Valid(b.Input) {
				return fmt.Errorf("block %+v, want a call with an id and input", b)
			}
			return streamedMessage(body)(s)
		}},
		{"messages", "count_tokens counts the prompt", func(s *session) error {
			m, err := s.claude(claude(claudeAsk, ""))
			if err != nil {
				return err
			}
			a, err := s.post(messagesPath+"/count_tokens", fmt.Sprintf(`{"model":%q,"messages":%s}`, modelMark, claudeAsk))
			if err != nil {
				return err
			}
			var n claudeUsage
			if err := a.into(&n); err != nil {
				return err
			}
			if n.Input != m.Usage.prompt() {
				return fmt.Errorf("%d tokens counted, the answer's usage has %d", n.Input, m.Usage.prompt())
			}
			return nil
		}},
		{"messages", "anthropic-version and cache_control change nothing", func(s *session) error {
			m, err := s.claude(claude(claudeAsk, ""))
			if err != nil {
				return err
			}
			body := claude(fmt.Sprintf(`[{"role":"user","content":[{"type":"text","text":%q,"cache_control":{"type":"ephemeral"}}]}]`, question), "")
			a, err := s.send(http.MethodPost, messagesPath, body, http.Header{"Content-Type": {"application/json"}, "Anthropic-Version": {"2023-06-01"}})
			if err != nil {
				return err
			}
			var other claudeMessage
			if err := a.into(&other); err != nil {
				return err
			}
			if other.of("text") != m.of("text") || other.Usage.prompt() != m.Usage.prompt() {
				return fmt.Errorf("%q over %d tokens, want %q over %d", other.of("text"), other.Usage.prompt(), m.of("text"), m.Usage.prompt())
			}
			return nil
		}},
		{"messages", "no max_tokens", func(s *session) error {
			return s.refuse(messagesPath, strings.Replace(claude(claudeAsk, ""), `"max_tokens":400,`, "", 1), refusal{status: 400, param: "max_tokens"})
		}},
		{"messages", "an unknown field", func(s *session) error {
			return s.refuse(messagesPath, claude(claudeAsk, `,"frobnicate":1`), refusal{status: 400, param: "frobnicate"})
		}},
		{"messages", "an image", func(s *session) error {
			return s.refuse(messagesPath, claude(`[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}]}]`, ""), refusal{status: 400, param: "messages[0].content[0].type"})
		}},
	}
}

// claudeEvent is an event of a stream of messages.
type claudeEvent struct {
	Type         string
	Index        int
	Message      *claudeMessage
	ContentBlock claudeBlock `json:"content_block"`
	Delta        struct {
		Type, Text, Thinking string
		PartialJSON          string  `json:"partial_json"`
		StopReason           *string `json:"stop_reason"`
	}
	Usage *claudeUsage
}

// streamedMessage wants the stream to make the message that comes whole.
func streamedMessage(body string) func(*session) error {
	return func(s *session) error {
		whole, err := s.claude(body)
		if err != nil {
			return err
		}
		events, err := s.events(messagesPath, strings.TrimSuffix(body, "}")+`,"stream":true}`)
		if err != nil {
			return err
		}
		got, err := assembleClaude(events)
		if err != nil {
			return err
		}
		if got.of("text") != whole.of("text") || got.of("thinking") != whole.of("thinking") || *got.StopReason != *whole.StopReason {
			return fmt.Errorf("streamed %q (%s), whole %q (%s)", got.of("text"), *got.StopReason, whole.of("text"), *whole.StopReason)
		}
		same := func(a, b claudeBlock) bool { return a.Type == b.Type && a.Name == b.Name && sameJSON(a.Input, b.Input) }
		if !slices.EqualFunc(got.Content, whole.Content, same) || got.Usage.Output != whole.Usage.Output {
			return fmt.Errorf("streamed the blocks %+v with usage %+v, whole %+v with %+v", got.Content, got.Usage, whole.Content, whole.Usage)
		}
		return nil
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	json.Unmarshal(a, &x)
	json.Unmarshal(b, &y)
	return fmt.Sprint(x) == fmt.Sprint(y)
}

func assembleClaude(events []event) (*claudeMessage, error) {
	var m *claudeMessage
	open := -1 // the block that deltas may go to
	stopped := false
	for i, e := range events {
		var c claudeEvent
		if err := json.Unmarshal([]byte(e.data), &c); err != nil || c.Type != e.name {
			return nil, fmt.Errorf("event %d is named %q and has the data %q, want the name as type", i, e.name, e.data)
		}
		switch {
		case c.Type == "ping":
		case c.Type == "message_start" && m == nil && c.Message != nil:
			m = c.Message
		case m == nil || stopped:
			return nil, fmt.Errorf("%s comes before message_start or after message_stop", c.Type)
		case c.Type == "content_block_start" && open < 0 && c.Index == len(m.Content):
			open = c.Index
			m.Content = append(m.Content, c.ContentBlock)
			m.Content[open].Input = nil
		case c.Type == "content_block_delta" && c.Index == open:
			b := &m.Content[open]
			b.Text += c.Delta.Text
			b.Thinking += c.Delta.Thinking
			b.Input = append(b.Input, c.Delta.PartialJSON...)
		case c.Type == "content_block_stop" && c.Index == open:
			open = -1
		case c.Type == "message_delta" && open < 0 && c.Usage != nil:
			m.StopReason, m.Usage = c.Delta.StopReason, *c.Usage
		case c.Type == "message_stop" && open < 0:
			stopped = true
		default:
			return nil, fmt.Errorf("event %d, %s of block %d, is out of turn", i, c.Type, c.Index)
		}
	}
	if !stopped || m.StopReason == nil {
		return nil, errors.New("the stream has no message_stop, or no stop reason before it")
	}
	return m, nil
}
