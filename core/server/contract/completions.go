package contract

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

const completionsPath = "/v1/completions"

// textCompletion is an answer of OpenAI's completions.
type textCompletion struct {
	Object  string
	Choices []textChoice
	Usage   *usage
}

type textChoice struct {
	Index        int
	Text         string
	FinishReason *string `json:"finish_reason"`
	TokenIDs     []int32 `json:"token_ids"`
	PromptIDs    []int32 `json:"prompt_token_ids"`
}

const oneTwo = `"One, two, three,"`

func complete(prompt, more string) string {
	return fmt.Sprintf(`{"model":%q,"temperature":0,"max_tokens":6,"prompt":%s%s}`, modelMark, prompt, more)
}

func completionChecks() []check {
	return []check{
		{"completions", "a text", func(s *session) error {
			_, err := s.complete(complete(oneTwo, ""))
			return err
		}},
		{"completions", "the tokens of a text, the same answer", tokensAsPrompt},
		{"completions", "several texts", func(s *session) error {
			one, err := s.complete(complete(oneTwo, ""))
			if err != nil {
				return err
			}
			two, err := s.complete(complete("["+oneTwo+","+oneTwo+"]", ""))
			if err != nil {
				return err
			}
			if len(two.Choices) != 2 || two.Choices[0].Text != one.Choices[0].Text || two.Choices[1].Text != one.Choices[0].Text || two.Choices[1].Index != 1 {
				return fmt.Errorf("choices %+v, want two like %+v", two.Choices, one.Choices[0])
			}
			return nil
		}},
		{"completions", "a stream is the whole answer", streamedText},
		{"completions", "no limit is one of 16 tokens", func(s *session) error {
			c, err := s.complete(strings.Replace(complete(oneTwo, ""), `"max_tokens":6,`, "", 1))
			if err == nil && c.Usage.CompletionTokens > 16 {
				err = fmt.Errorf("%d tokens, want at most 16", c.Usage.CompletionTokens)
			}
			return err
		}},
		{"completions", "a token that is none", func(s *session) error {
			return s.refuse(completionsPath, complete("[2147483647]", ""), refusal{status: 400, param: "prompt"})
		}},
		{"completions", "a negative token", func(s *session) error {
			return s.refuse(completionsPath, complete("[1,-1]", ""), refusal{status: 400, param: "prompt[1]"})
		}},
		{"completions", "a prompt that is too long", tooLong},
	}
}

func (s *session) complete(body string) (*textCompletion, error) {
	if err := s.have(completionsPath); err != nil {
		return nil, err
	}
	a, err := s.post(completionsPath, body)
	if err != nil {
		return nil, err
	}
	return textOf(a)
}

func textOf(a *answer) (*textCompletion, error) {
	var c textCompletion
	if err := a.into(&c); err != nil {
		return nil, err
	}
	if c.Object != "text_completion" || len(c.Choices) == 0 || c.Usage == nil || c.Choices[0].FinishReason == nil {
		return nil, a.wrong("want a text_completion with choices, finish reasons and usage")
	}
	return &c, nil
}

// tokensAsPrompt asks for the tokens and sends them back.
func tokensAsPrompt(s *session) error {
	if err := s.have(completionsPath); err != nil {
		return err
	}
	a, err := s.post(completionsPath, complete(oneTwo, `,"return_token_ids":true`))
	if err != nil {
		return err
	}
	if a.status == 400 {
		return skipped("the server has no return_token_ids")
	}
	text, err := textOf(a)
	if err != nil {
		return err
	}
	got := text.Choices[0]
	if len(got.PromptIDs) != text.Usage.PromptTokens || len(got.TokenIDs) != text.Usage.CompletionTokens {
		return fmt.Errorf("%d and %d token ids, want %d of the prompt and %d of the completion",
			len(got.PromptIDs), len(got.TokenIDs), text.Usage.PromptTokens, text.Usage.CompletionTokens)
	}
	ids, err := json.Marshal(got.PromptIDs)
	if err != nil {
		return err
	}
	again, err := s.complete(complete(string(ids), `,"return_token_ids":true`))
	if err != nil {
		return err
	}
	if c := again.Choices[0]; c.Text != got.Text || !slices.Equal(c.PromptIDs, got.PromptIDs) || !slices.Equal(c.TokenIDs, got.TokenIDs) {
		return fmt.Errorf("the tokens give %+v, want %+v as the text does", c, got)
	}
	return nil
}

func streamedText(s *session) error {
	whole, err := s.complete(complete(oneTwo, ""))
	if err != nil {
		return err
	}
	events, err := s.events(completionsPath, streaming(complete(oneTwo, "")))
	if err != nil {
		return err
	}
	if len(events) == 0 || events[len(events)-1].data != "[DONE]" {
		return errors.New("the stream does not end with [DONE]")
	}
	var text, finish string
	var used *usage
	for _, e := range events[:len(events)-1] {
		var c textCompletion
		if err := json.Unmarshal([]byte(e.data), &c); err != nil {
			return fmt.Errorf("event %q, want JSON: %w", e.data, err)
		}
		for _, one := range c.Choices {
			text += one.Text
			if one.FinishReason != nil {
				finish += *one.FinishReason
			}
		}
		if c.Usage != nil {
			used = c.Usage
		}
	}
	want := whole.Choices[0]
	if text != want.Text || finish != *want.FinishReason {
		return fmt.Errorf("streamed %q (%s), whole %q (%s)", text, finish, want.Text, *want.FinishReason)
	}
	if used == nil || used.CompletionTokens != whole.Usage.CompletionTokens {
		return errors.New("the stream's usage is not that of the whole answer")
	}
	return nil
}

// tooLong sends one token more than the context, where the server tells how
// long that is. Both numbers must be said.
func tooLong(s *session) error {
	if err := s.have(completionsPath); err != nil {
		return err
	}
	context, err := s.contextLength()
	if err != nil {
		return err
	}
	body := complete("["+strings.Repeat("0,", context)+"0]", "")
	a, err := s.post(completionsPath, body)
	if err != nil {
		return err
	}
	if err := (refusal{status: 400, code: "context_length_exceeded"}).matches(a, completionsPath); err != nil {
		return err
	}
	for _, n := range []int{context, context + 1} {
		if !strings.Contains(string(a.body), fmt.Sprint(n)) {
			return a.wrong(fmt.Sprintf("want a message that says %d, too", n))
		}
	}
	return nil
}

func (s *session) contextLength() (int, error) {
	a, err := s.get("/v1/models/" + s.model)
	if err != nil {
		return 0, err
	}
	var m struct {
		Length int `json:"max_model_len"`
	}
	if err := a.into(&m); err != nil {
		return 0, err
	}
	if m.Length <= 0 {
		return 0, skipped("the server does not tell the model's max_model_len")
	}
	return m.Length, nil
}
