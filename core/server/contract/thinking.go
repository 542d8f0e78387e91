package contract

import (
	"errors"
	"fmt"
	"strings"
)

// thinkOn asks for a thought. The answer may take more tokens then.
const thinkOn = `"chat_template_kwargs":{"enable_thinking":true},"max_tokens":400`

func thinkingChecks() []check {
	return []check{
		{"thinking", "on: the thought is apart from the content", func(s *session) error {
			c, err := s.think(ask(thinkOn))
			if err != nil {
				return err
			}
			return thoughtApart(c)
		}},
		{"thinking", "on: streamed", func(s *session) error {
			if _, err := s.think(ask(thinkOn)); err != nil {
				return err
			}
			return streamEqualsWhole(ask(thinkOn))(s)
		}},
		{"thinking", "off: there is no thought", func(s *session) error {
			return s.noThought(ask(`"chat_template_kwargs":{"enable_thinking":false}`))
		}},
		{"thinking", "effort none: there is no thought", func(s *session) error {
			return s.noThought(ask(`"reasoning_effort":"none"`))
		}},
		{"thinking", "a budget of 4 tokens", func(s *session) error {
			c, err := s.think(ask(`"thinking_budget":4,"max_tokens":400`))
			if err != nil {
				return err
			}
			// What closes the thought is counted with it.
			if n := c.Usage.CompletionDetails.ReasoningTokens; n > 4+4 {
				return fmt.Errorf("%d tokens of thought, want at most 4 and what closes it", n)
			}
			return thoughtApart(c)
		}},
		{"thinking", "a limit within the thought", func(s *session) error {
			c, err := s.think(ask(`"chat_template_kwargs":{"enable_thinking":true},"max_tokens":2`))
			if err != nil {
				return err
			}
			if c.Usage.CompletionTokens != 2 || c.finish() != "length" || c.text() != "" {
				return fmt.Errorf("%d tokens, content %q, finish reason %q; want 2, none and length", c.Usage.CompletionTokens, c.text(), c.finish())
			}
			return nil
		}},
		{"thinking", "switches that contradict each other", func(s *session) error {
			if _, err := s.think(ask(thinkOn)); err != nil {
				return err
			}
			return s.refuse(chatPath, ask(`"reasoning_effort":"none",`+thinkOn), refusal{status: 400})
		}},
	}
}

// think asks with fields for thinking, which a server may not have.
func (s *session) think(body string) (*chatAnswer, error) {
	a, err := s.post(chatPath, body)
	if err != nil {
		return nil, err
	}
	if a.status == 400 && (strings.Contains(string(a.body), "chat_template_kwargs") || strings.Contains(string(a.body), "thinking_budget")) {
		return nil, skipped("the server has no such switch: " + a.short())
	}
	var c chatAnswer
	if err := a.into(&c); err != nil {
		return nil, err
	}
	return &c, c.well("chat.completion")
}

func (s *session) noThought(body string) error {
	c, err := s.think(body)
	if err != nil {
		return err
	}
	if c.Choices[0].Message.ReasoningContent != "" || c.Usage.CompletionDetails.ReasoningTokens != 0 {
		return errors.New("there is a thought, want none")
	}
	return thinkTags(c)
}

func thoughtApart(c *chatAnswer) error {
	if c.Choices[0].Message.ReasoningContent == "" {
		return errors.New("no reasoning_content, want the thought")
	}
	if n := c.Usage.CompletionDetails.ReasoningTokens; n <= 0 || n > c.Usage.CompletionTokens {
		return fmt.Errorf("%d tokens of thought of %d tokens, want some", n, c.Usage.CompletionTokens)
	}
	return thinkTags(c)
}

func thinkTags(c *chatAnswer) error {
	if strings.Contains(c.text(), "<think>") || strings.Contains(c.text(), "</think>") {
		return fmt.Errorf("content %q, want none of the thought in it", c.text())
	}
	return nil
}
