package completion

import (
	"context"
	"io"
	"slices"

	"calla/core/chat"
	"calla/core/engine"
	"calla/core/tokenizer"
)

// Completion is one completion on its way. It belongs to one goroutine.
type Completion struct {
	service *Service
	ctx     context.Context
	request Request
	prompt  prompt
	g       *engine.Generation
	steer   *steering // nil where nothing is held to a grammar or a budget

	decoder *tokenizer.Decoder
	parser  *chat.Parser // nil: all text is content
	reply   chat.Reply
	stop    stopper

	events    []Event
	pending   []Token // tokens whose text was not shown yet
	tokens    []int32
	reasoning int // tokens of thought
	stopText  string
	over      bool // no more events come from the engine
}

func newCompletion(ctx context.Context, s *Service, r Request, p prompt, g *engine.Generation, steer *steering) *Completion {
	c := &Completion{
		service: s, ctx: ctx, request: r, prompt: p, g: g, steer: steer,
		decoder: s.tokenizer.NewDecoder(true),
		stop:    stopper{texts: r.Stop},
	}
	if r.Prompt == nil && r.Tokens == nil {
		c.parser = chat.NewParser(r.Tools, p.inThink)
	}
	return c
}

// Prompt returns the tokens of the rendered prompt.
func (c *Completion) Prompt() []int32 { return c.prompt.tokens }

// Next returns the next event. The last is Done; after it comes io.EOF. Any
// other error ends the completion too.
func (c *Completion) Next() (Event, error) {
	for len(c.events) == 0 {
		if c.over {
			return Event{}, io.EOF
		}
		e, err := c.g.Next(c.ctx)
		switch {
		case err == io.EOF:
			c.finish()
		case err != nil:
			c.over = true
			return Event{}, err
		case e.Token < 0:
			return Event{Kind: Progress, Progress: e.Progress}, nil
		case c.stopText == "":
			c.take(e)
		}
	}
	e := c.events[0]
	c.events = c.events[1:]
	return e, nil
}

// Close ends the completion, if it has not ended.
func (c *Completion) Close() {
	c.over = true
	c.g.Cancel()
}

// take decodes one token and passes its text on.
func (c *Completion) take(e engine.Event) {
	c.tokens = append(c.tokens, e.Token)
	if c.parser != nil && c.parser.InThink() {
		c.reasoning++
	}
	if e.LogProb != nil {
		c.pending = append(c.pending, c.describe(*e.LogProb))
	}
	name, isControl := c.service.control[e.Token]
	if c.parser == nil || !isControl {
		c.text(c.decoder.Add(e.Token))
		return
	}
	// A control token ends a character that was never completed.
	c.text(c.decoder.Flush())
	c.parsed(c.parser.Control(name))
}

// describe names the tokens of a log-probability.
func (c *Completion) describe(p engine.LogProb) Token {
	t := Token{ID: p.Token, Bytes: c.service.tokenizer.Bytes(p.Token), LogProb: p.LogProb}
	for _, x := range p.Top {
		t.Top = append(t.Top, c.describe(x))
	}
	return t
}

// text passes decoded text on.
func (c *Completion) text(s string) {
	switch {
	case s == "":
	case c.parser == nil:
		c.content(s)
	default:
		c.parsed(c.parser.Text(s))
	}
}

// parsed passes on what the parser made of the text.
func (c *Completion) parsed(events []chat.Event) {
	for _, e := range events {
		if c.stopText != "" {
			return
		}
		if e.Kind != chat.ContentDelta {
			c.release()
		}
		c.reply.Add(e)
		switch e.Kind {
		case chat.ReasoningDelta:
			c.emit(Event{Kind: Reasoning, Text: e.Text})
		case chat.ContentDelta:
			c.content(e.Text)
		case chat.CallOpened:
			c.emit(Event{Kind: ToolCall, Index: e.Call, Name: e.Name})
		case chat.ArgumentsDelta:
			c.emit(Event{Kind: Arguments, Index: e.Call, Text: e.Text})
		}
	}
}

// content passes on text of the answer, up to a stop text. Stop texts are
// looked for in the answer alone, not in thoughts or in tool calls.
func (c *Completion) content(s string) {
	show, stop := c.stop.add(s)
	c.show(show, stop)
}

// release shows what was held back for a stop text that did not come.
func (c *Completion) release() {
	if show, stop := c.stop.flush(); show != "" || stop != "" {
		c.show(show, stop)
	}
}

func (c *Completion) show(text, stop string) {
	if text != "" {
		c.emit(Event{Kind: Content, Text: text})
	}
	if stop != "" {
		c.stopText = stop
		c.g.Stop()
	}
}

// emit queues an event together with the tokens behind it.
func (c *Completion) emit(e Event) {
	if e.Kind == Content || e.Kind == Reasoning {
		e.Tokens, c.pending = c.pending, nil
	}
	c.events = append(c.events, e)
}

// finish passes on what was held back, and the end.
func (c *Completion) finish() {
	c.over = true
	r := c.g.Result()
	if c.stopText == "" {
		c.text(c.decoder.Flush())
		if c.parser != nil {
			c.parsed(c.parser.Close(r.Reason == engine.FinishLength))
		}
		c.release()
	}
	out := &Result{
		Reason: Reason(r.Reason), StopText: c.stopText,
		PromptTokens: r.PromptTokens, CachedTokens: r.CachedTokens, CompletionTokens: r.CompletionTokens,
		ReasoningTokens: c.reasoning, Tokens: c.tokens,
		Miss: r.Miss, Warning: r.Warning, Timing: r.Timing,
	}
	if out.Warning == "" && r.Reason == engine.FinishLength && c.steer.unfinished() {
		out.Warning = "the limit of tokens came before the end of the answer, which is not complete"
	}
	if c.stopText != "" {
		out.Reason = ReasonStop
	} else if r.Reason == engine.FinishStop && len(c.reply.Calls()) > 0 {
		out.Reason = ReasonToolCalls
	}
	c.emit(Event{Kind: Done, Result: out})
	c.anticipate(out)
}

// anticipate lets an idle engine prefill the reply as the next prompt will
// have it.
func (c *Completion) anticipate(r *Result) {
	if c.parser == nil || r.Reason == ReasonLength || r.StopText != "" {
		return // not what the client will send back
	}
	reply := chat.Message{Role: "assistant", Content: chat.Text(c.reply.Content()), ToolCalls: c.reply.Calls()}
	if thought := c.reply.Reasoning(); thought != "" {
		reply.Reasoning = &thought
	}
	request := c.request
	request.Messages = slices.Clone(request.Messages)
	c.service.engine.Anticipate(request.CacheKey, func() (tokens []int32, keep []int) {
		return c.service.foresee(request, reply)
	})
}
