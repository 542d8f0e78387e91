package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

const responsesPath = "/v1/responses"

func respond(input, more string) string {
	return fmt.Sprintf(`{"model":%q,"temperature":0,"max_output_tokens":%d,"input":%s%s}`, modelMark, limit, input, more)
}

// response is an answer of OpenAI's responses.
type response struct {
	ID     string
	Object string
	Status string
	Output []struct {
		Type      string
		ID        string
		Name      string
		CallID    string `json:"call_id"`
		Arguments string
		Content   []struct{ Type, Text string }
	}
	Usage *struct {
		InputTokens  int `json:"input_tokens"`
		OutputTokens int `json:"output_tokens"`
		TotalTokens  int `json:"total_tokens"`
	}
}

// text joins the texts of the messages in a response.
func (r *response) text() string {
	var all strings.Builder
	for _, item := range r.Output {
		for _, part := range item.Content {
			if item.Type == "message" && part.Type == "output_text" {
				all.WriteString(part.Text)
			}
		}
	}
	return all.String()
}

func (r *response) well() error {
	switch {
	case r.ID == "" || r.Object != "response" || r.Status != "completed" && r.Status != "incomplete":
		return errors.New("want an id, the object response and the status completed or incomplete")
	case r.Usage == nil || r.Usage.TotalTokens != r.Usage.InputTokens+r.Usage.OutputTokens:
		return errors.New("want usage whose total is the sum of its parts")
	case len(r.Output) == 0:
		return errors.New("want output")
	}
	return nil
}

func (s *session) respond(body string) (*response, error) {
	if err := s.have(responsesPath); err != nil {
		return nil, err
	}
	a, err := s.post(responsesPath, body)
	if err != nil {
		return nil, err
	}
	var r response
	if err := a.into(&r); err != nil {
		return nil, err
	}
	if err := r.well(); err != nil {
		return nil, a.wrong(err.Error())
	}
	return &r, nil
}

func responsesChecks() []check {
	q := quoted(question)
	return []check{
		{"responses", "the answer is that of chat completions", func(s *session) error {
			r, err := s.respond(respond(q, ""))
			if err != nil {
				return err
			}
			c, err := s.chat(ask(""))
			if err != nil {
				return err
			}
			if r.text() != c.text() {
				return fmt.Errorf("%q, chat completions say %q", r.text(), c.text())
			}
			return nil
		}},
		{"responses", "input in all its forms", func(s *session) error {
			var first *response
			for _, input := range []string{
				q, `[{"role":"user","content":` + q + `}]`,
				`[{"type":"message","role":"user","content":[{"type":"input_text","text":` + q + `}]}]`,
			} {
				r, err := s.respond(respond(input, ""))
				if err != nil {
					return fmt.Errorf("input %s: %w", input, err)
				}
				if first == nil {
					first = r
				}
				if r.text() != first.text() || r.Usage.InputTokens != first.Usage.InputTokens {
					return fmt.Errorf("input %s gives %q, want %q as the text gives", input, r.text(), first.text())
				}
			}
			return nil
		}},
		{"responses", "a stream is the whole answer", streamedResponse},
		{"responses", "a limit", func(s *session) error {
			r, err := s.respond(strings.Replace(respond(q, ""), fmt.Sprintf(`"max_output_tokens":%d`, limit), `"max_output_tokens":2`, 1))
			if err == nil && (r.Status != "incomplete" || r.Usage.OutputTokens != 2) {
				err = fmt.Errorf("status %s and %d tokens, want incomplete and 2", r.Status, r.Usage.OutputTokens)
			}
			return err
		}},
		{"responses", "nothing is stored: previous_response_id", func(s *session) error {
			return s.refuse(responsesPath, respond(q, `,"previous_response_id":"resp_1"`), refusal{status: 400, param: "previous_response_id"})
		}},
		{"responses", "an image", func(s *session) error {
			return s.refuse(responsesPath, respond(`[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}]`, ""), refusal{status: 400, param: "input[0].content[0].type"})
		}},
	}
}

// streamedResponse takes a stream apart: numbered events, each name twice, and
// deltas that make what the last event has.
func streamedResponse(s *session) error {
	whole, err := s.respond(respond(quoted(question), ""))
	if err != nil {
		return err
	}
	events, err := s.events(responsesPath, respond(quoted(question), `,"stream":true`))
	if err != nil {
		return err
	}
	var deltas strings.Builder
	var last struct {
		Type     string
		Sequence int `json:"sequence_number"`
		Delta    string
		Response *response
	}
	for i, e := range events {
		if err := json.Unmarshal([]byte(e.data), &last); err != nil {
			return fmt.Errorf("event %q, want JSON: %w", e.data, err)
		}
		if last.Type != e.name || last.Sequence != i {
			return fmt.Errorf("event %d is named %q, has the type %q and the number %d, want one name and its place", i, e.name, last.Type, last.Sequence)
		}
		if last.Type == "response.output_text.delta" {
			deltas.WriteString(last.Delta)
		}
	}
	if last.Type != "response."+whole.Status || last.Response == nil {
		return fmt.Errorf("the last event is %q, want response.%s with the response", last.Type, whole.Status)
	}
	if err := last.Response.well(); err != nil {
		return err
	}
	if deltas.String() != whole.text() || last.Response.text() != whole.text() {
		return fmt.Errorf("the deltas make %q and the last event has %q, whole %q", deltas.String(), last.Response.text(), whole.text())
	}
	return nil
}
