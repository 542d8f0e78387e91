package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const chatPath = "/v1/chat/completions"

// question is what checks ask where the answer's words do not matter: any model
// has something to say to it, in more than three tokens.
const question = "What is the capital of France?"

// limit bounds the answers, for the sake of large models on small machines.
const limit = 48

// ask returns a chat request with more fields.
func ask(more string) string {
	return askFor(fmt.Sprintf(`[{"role":"user","content":%q}]`, question), more)
}

// askFor returns a chat request with these messages and more fields. An answer
// to it is short unless more sets max_tokens.
func askFor(messages, more string) string {
	if !strings.Contains(more, `"max_tokens"`) && !strings.Contains(more, `"max_completion_tokens"`) {
		more = fmt.Sprintf(`"max_tokens":%d,%s`, limit, more)
	}
	if !strings.Contains(more, `"temperature"`) {
		more = `"temperature":0,` + more
	}
	return fmt.Sprintf(`{"model":%q,"messages":%s,%s}`, modelMark, messages, strings.TrimSuffix(more, ","))
}

// chatAnswer is an answer to a chat request, whole or put together from a
// stream.
type chatAnswer struct {
	ID      string
	Object  string
	Created int64
	Model   string
	Choices []choice
	Usage   *usage
}

type choice struct {
	Index        int
	Message      message
	FinishReason *string `json:"finish_reason"`
	LogProbs     *struct{ Content []tokenProb }
}

type message struct {
	Role             string
	Content          *string
	ReasoningContent string     `json:"reasoning_content"`
	ToolCalls        []toolCall `json:"tool_calls"`
}

type toolCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

type tokenProb struct {
	Token   string
	LogProb float64
	Bytes   []int
	Top     []tokenProb `json:"top_logprobs"`
}

type usage struct {
	PromptTokens      int `json:"prompt_tokens"`
	CompletionTokens  int `json:"completion_tokens"`
	TotalTokens       int `json:"total_tokens"`
	CompletionDetails struct {
		ReasoningTokens int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// text returns the first choice's content.
func (c *chatAnswer) text() string {
	if p := c.Choices[0].Message.Content; p != nil {
		return *p
	}
	return ""
}

func (c *chatAnswer) finish() string {
	if p := c.Choices[0].FinishReason; p != nil {
		return *p
	}
	return ""
}

// chat asks for a completion and checks what holds for each.
func (s *session) chat(body string) (*chatAnswer, error) {
	a, err := s.post(chatPath, body)
	if err != nil {
		return nil, err
	}
	var c chatAnswer
	if err := a.into(&c); err != nil {
		return nil, err
	}
	if err := c.well("chat.completion"); err != nil {
		return nil, a.wrong(err.Error())
	}
	return &c, nil
}

// well checks a completion by itself.
func (c *chatAnswer) well(object string) error {
	switch {
	case c.ID == "" || c.Model == "" || c.Created <= 0 || c.Object != object:
		return fmt.Errorf("want an id, a model, a time of creation and the object %s", object)
	case len(c.Choices) == 0:
		return errors.New("want a choice")
	case c.Usage == nil:
		return errors.New("want usage")
	case c.Usage.TotalTokens != c.Usage.PromptTokens+c.Usage.CompletionTokens || c.Usage.PromptTokens <= 0:
		return errors.New("want usage whose total is the sum of its parts")
	}
	for i, ch := range c.Choices {
		reasons := []string{"stop", "length", "tool_calls"}
		if ch.Index != i || ch.Message.Role != "assistant" || ch.FinishReason == nil || !slices.Contains(reasons, *ch.FinishReason) {
			return errors.New("want choices in order, of the assistant, each with a finish reason")
		}
		if ch.Message.Content != nil && !utf8.ValidString(*ch.Message.Content) {
			return errors.New("want text that is UTF-8")
		}
	}
	return nil
}

func chatChecks() []check {
	return []check{
		{"chat", "an answer", func(s *session) error {
			c, err := s.chat(ask(""))
			if err == nil && c.text() == "" {
				err = errors.New("the answer is empty, want some text")
			}
			return err
		}},
		{"chat", "the same request, the same answer", sameAs(ask(""))},
		{"chat", "the same seed, the same answer", sameAs(ask(`"temperature":1,"seed":7`))},
		{"chat", "max_tokens", lengthCheck(`"max_tokens":2`, 2)},
		{"chat", "max_completion_tokens", lengthCheck(`"max_completion_tokens":2`, 2)},
		{"chat", "both limits: the smaller one", lengthCheck(`"max_tokens":3,"max_completion_tokens":2`, 2)},
		{"chat", "both limits: the smaller one, the other way round", lengthCheck(`"max_tokens":2,"max_completion_tokens":3`, 2)},
		{"chat", "stop text", stopCheck(func(stop string) string { return quoted(stop) })},
		{"chat", "the last of four stop texts", stopCheck(func(stop string) string {
			return `["\u0001","\u0002",` + quoted(stop+"\u0001") + `,` + quoted(stop) + `]`
		})},
		{"chat", "a stop text that nearly comes", nearStop},
		{"chat", "n choices", choicesCheck},
		{"chat", "logprobs", logProbsCheck},
		{"chat", "developer messages are system messages", developerCheck},
		{"chat", "JSON mode is kept to or refused", jsonModeCheck},
	}
}

// developerCheck puts a developer's message in the place of a system message, of
// the only one and of the second.
func developerCheck(s *session) error {
	for _, before := range []string{"", `{"role":"system","content":"Be kind."},`} {
		with := func(role string) string {
			return askFor(fmt.Sprintf(`[%s{"role":%q,"content":"Be brief."},{"role":"user","content":"Hello"}]`, before, role), "")
		}
		if err := s.equal(with("system"), with("developer")); err != nil {
			return err
		}
	}
	return nil
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// equal wants the same answer, over the same number of prompt tokens, to each
// body.
func (s *session) equal(bodies ...string) error {
	var first *chatAnswer
	for i, body := range bodies {
		c, err := s.chat(body)
		if err != nil {
			return fmt.Errorf("form %d of %d: %w", i+1, len(bodies), err)
		}
		if first == nil {
			first = c
			continue
		}
		if c.Usage.PromptTokens != first.Usage.PromptTokens {
			return fmt.Errorf("form %d has %d prompt tokens, form 1 has %d, want the same", i+1, c.Usage.PromptTokens, first.Usage.PromptTokens)
		}
		if c.text() != first.text() {
			return fmt.Errorf("form %d answers %q, form 1 %q, want the same", i+1, c.text(), first.text())
		}
	}
	return nil
}

func sameAs(body string) func(*session) error {
	return func(s *session) error { return s.equal(body, body) }
}

func lengthCheck(fields string, most int) func(*session) error {
	return func(s *session) error {
		c, err := s.chat(ask(fields))
		if err != nil {
			return err
		}
		if n := c.Usage.CompletionTokens; n != most || c.finish() != "length" {
			return fmt.Errorf("%d tokens and the finish reason %q, want %d and length", n, c.finish(), most)
		}
		return nil
	}
}

// stopCheck stops an answer at a text from its middle, whole and streamed.
func stopCheck(field func(stop string) string) func(*session) error {
	return func(s *session) error {
		full, err := s.chat(ask(""))
		if err != nil {
			return err
		}
		stop, before, err := fromMiddle(full.text())
		if err != nil {
			return err
		}
		body := ask(`"stop":` + field(stop))
		whole, err := s.chat(body)
		if err != nil {
			return err
		}
		streamed, err := s.chatStream(streaming(body))
		if err != nil {
			return err
		}
		for _, c := range []*chatAnswer{whole, streamed} {
			if c.text() != before || c.finish() != "stop" {
				return fmt.Errorf("%q and the finish reason %q with the stop text %q, want %q and stop", c.text(), c.finish(), stop, before)
			}
		}
		return nil
	}
}

// fromMiddle returns a stretch of an answer and what stands before it.
func fromMiddle(text string) (stretch, before string, err error) {
	runes := []rune(text)
	if len(runes) < 9 {
		return "", "", skipped(fmt.Sprintf("the answer %q is too short to stop in its middle", text))
	}
	stretch = string(runes[len(runes)/3 : len(runes)/3+4])
	before, _, _ = strings.Cut(text, stretch)
	return stretch, before, nil
}

// nearStop is a stop text of which only the beginning comes.
func nearStop(s *session) error {
	full, err := s.chat(ask(""))
	if err != nil {
		return err
	}
	stretch, _, err := fromMiddle(full.text())
	if err != nil {
		return err
	}
	end := string([]rune(full.text())[utf8.RuneCountInString(full.text())-2:])
	body := ask(`"stop":[` + quoted(stretch+"\u0001") + `,` + quoted(end+"\u0001") + `]`)
	whole, err := s.chat(body)
	if err != nil {
		return err
	}
	streamed, err := s.chatStream(streaming(body))
	if err != nil {
		return err
	}
	for _, c := range []*chatAnswer{whole, streamed} {
		if c.text() != full.text() || c.finish() != full.finish() {
			return fmt.Errorf("%q (%s) with stop texts that do not come, want the whole answer %q (%s)", c.text(), c.finish(), full.text(), full.finish())
		}
	}
	return nil
}

func choicesCheck(s *session) error {
	one, err := s.chat(ask(""))
	if err != nil {
		return err
	}
	two, err := s.chat(ask(`"n":2`))
	if err != nil {
		return err
	}
	if len(two.Choices) != 2 {
		return fmt.Errorf("%d choices, want 2", len(two.Choices))
	}
	for _, c := range two.Choices {
		if c.Message.Content == nil || *c.Message.Content != one.text() {
			return errors.New("a greedy choice of two is not the answer that comes alone")
		}
	}
	if two.Usage.CompletionTokens != 2*one.Usage.CompletionTokens || two.Usage.PromptTokens != one.Usage.PromptTokens {
		return fmt.Errorf("usage %+v for two choices, want the prompt once and the tokens of both beside %+v for one", *two.Usage, *one.Usage)
	}
	return nil
}

func logProbsCheck(s *session) error {
	c, err := s.chat(ask(`"logprobs":true,"top_logprobs":3`))
	if err != nil {
		return err
	}
	if c.Choices[0].LogProbs == nil {
		return errors.New("no logprobs")
	}
	var text []byte
	for _, p := range c.Choices[0].LogProbs.Content {
		for _, b := range p.Bytes {
			text = append(text, byte(b))
		}
		if err := p.check(); err != nil {
			return err
		}
	}
	if string(text) != c.text() {
		return fmt.Errorf("the bytes of the tokens are %q, want the content %q", text, c.text())
	}
	return nil
}

// check wants the likeliest tokens first, the greedy choice among them.
func (p tokenProb) check() error {
	byProb := func(a, b tokenProb) int {
		switch {
		case a.LogProb > b.LogProb:
			return -1
		case a.LogProb < b.LogProb:
			return 1
		}
		return 0
	}
	switch {
	case p.LogProb > 0:
		return fmt.Errorf("log-probability %g, want none above 0", p.LogProb)
	case len(p.Top) != 3 || !slices.IsSortedFunc(p.Top, byProb):
		return fmt.Errorf("%d top_logprobs, want 3, the likeliest first", len(p.Top))
	case p.Top[0].LogProb != p.LogProb:
		return errors.New("the greedy token is not the likeliest")
	}
	return nil
}

// jsonModeCheck takes JSON or a refusal, not text that pretends.
func jsonModeCheck(s *session) error {
	a, err := s.post(chatPath, ask(`"response_format":{"type":"json_object"}`))
	if err != nil {
		return err
	}
	if a.status == 400 {
		if !strings.Contains(string(a.body), "response_format") {
			return a.wrong("want a refusal that names response_format")
		}
		return refusal{status: 400}.matches(a, chatPath)
	}
	var c chatAnswer
	if err := a.into(&c); err != nil {
		return err
	}
	if err := c.well("chat.completion"); err != nil {
		return a.wrong(err.Error())
	}
	if c.finish() == "stop" && !json.Valid([]byte(c.text())) {
		return a.wrong("want content that is JSON, or a refusal")
	}
	return nil
}
