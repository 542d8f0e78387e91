package completion

import (
	"calla/core/chat"
)

// prompt is what the engine evaluates first.
type prompt struct {
	tokens  []int32
	keep    []int // where later prompts of the conversation may part from it
	inThink bool  // the completion begins inside a think block
}

// prompt renders and encodes a request.
func (s *Service) prompt(r Request) (prompt, error) {
	switch {
	case r.Tokens != nil:
		return prompt{tokens: r.Tokens}, nil
	case r.Prompt != nil:
		return prompt{tokens: s.tokenizer.EncodeWithAdded(*r.Prompt)}, nil
	}
	rendered, err := chat.Render(r.Messages, chat.Options{
		Tools:               r.Tools,
		Thinking:            r.Thinking,
		PreserveThinking:    r.PreserveThinking,
		AddGenerationPrompt: true,
	})
	if err != nil {
		return prompt{}, err
	}
	tokens, starts := s.encode(rendered.Segments)
	p := prompt{tokens: tokens, inThink: rendered.InThink}
	if n := rendered.SystemEnd; n > 0 {
		p.keep = append(p.keep, starts[n])
	}
	// A person edits the last message, or goes on after it.
	p.keep = append(p.keep, starts[turnBefore(rendered.Segments, rendered.QueryEnd)], starts[rendered.QueryEnd])
	return p, nil
}

// encode returns the tokens of a rendered conversation, and before each
// segment, as after the last, how many there are.
func (s *Service) encode(segments []chat.Segment) (tokens []int32, starts []int) {
	for _, x := range segments {
		starts = append(starts, len(tokens))
		if x.Control {
			tokens = append(tokens, s.ids[x.Text])
		} else {
			tokens = append(tokens, s.tokenizer.Encode(x.Text)...)
		}
	}
	return tokens, append(starts, len(tokens))
}

// turnBefore returns the index of the segment with which the last turn before
// segment n begins.
func turnBefore(segments []chat.Segment, n int) int {
	for n--; n > 0; n-- {
		if segments[n].Control && segments[n].Text == chat.TurnStart {
			break
		}
	}
	return max(n, 0)
}

// foresee returns the longest beginning that every next prompt of the
// conversation has once reply is its last message, as the template will then
// render it: not as it was generated, since the template drops the think block
// when a new message follows. It returns nil where there is none.
func (s *Service) foresee(r Request, reply chat.Message) (tokens []int32, keep []int) {
	next := chat.Message{Role: "user", Content: chat.Text("?")}
	if len(reply.ToolCalls) > 0 {
		next.Role = "tool"
	}
	messages := append(append([]chat.Message{}, r.Messages...), reply, next)
	rendered, err := chat.Render(messages, chat.Options{Tools: r.Tools, PreserveThinking: r.PreserveThinking})
	if err != nil {
		return nil, nil
	}
	end := turnBefore(rendered.Segments, len(rendered.Segments))
	tokens, starts := s.encode(rendered.Segments[:end])
	if n := rendered.SystemEnd; n > 0 {
		keep = append(keep, starts[n])
	}
	if q := rendered.QueryEnd; q < end {
		keep = append(keep, starts[q])
	}
	return tokens, keep
}
