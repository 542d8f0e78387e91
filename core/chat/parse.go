package chat

import (
	"encoding/json"
	"strings"
)

// Parser splits a model's output into reasoning, content and tool calls, as it
// comes. The events do not depend on how the text is cut into pieces, except
// that a piece cut within a character gives events cut within it.
//
// Reasoning and content:
//   - </think> ends reasoning. White space at both ends of reasoning and the
//     newlines before content belong to nobody; nor does white space before a
//     tool call or after the last one.
//   - <think> opens reasoning, and a stray </think> is dropped, only where no
//     content has come since the output, or the last call, began. Elsewhere,
//     as all control tokens that mean nothing where they stand, they are text.
//
// A tool call, after the control token <tool_call>, is
//
//	<function=NAME>
//	<parameter=KEY>
//	VALUE
//	</parameter>
//	</function>
//
// and the control token </tool_call>, with any number of parameters and any
// white space around the tags. One newline at each end of VALUE is the
// format's own.
//   - Only the control token opens a call. The same letters written as
//     ordinary text are prose, and so is all markup where there are no tools.
//   - A call is one from its first parameter, or its end, on. What turns out
//     to be none before that is returned as text, nothing lost.
//   - Within reasoning a call of a declared tool ends the reasoning: the model
//     sometimes forgets to. Any other is text, because there the model may be
//     thinking about calls. In content any name makes a call; a client can
//     tell the model about its mistake.
//   - VALUE ends where the format goes on: at </parameter> before another
//     parameter that was not yet given, or before </function></tool_call>.
//     Everything else is part of VALUE, a </parameter> too. So an opened call
//     is never malformed, only finished or truncated.
//   - A <tool_call> in VALUE is quoted, and wants its own </tool_call>.
//   - The model sometimes forgets a closing tag. A declared parameter not yet
//     given, alone on its line, ends VALUE without </parameter>. And where one
//     of </parameter> and </function> is missing before </tool_call>, or a
//     quoted <tool_call> had no end, what follows decides: the call is
//     finished if the output ends or another call opens, else VALUE goes on.
//
// A value becomes JSON by what the tool's declaration says of it: see kinds.
type Parser struct {
	tools  map[string]*declaration // nil: markup is prose
	state  parserState
	events []Event

	prose stretch
	// answered says that some content has come.
	answered bool

	calls int  // the number of finished calls
	call  call // the one being read
	held  string
	tail  []byte // of inDoubt: the white space since </tool_call>
}

type parserState uint8

const (
	inProse   parserState = iota // reasoning or content
	inOpening                    // held is all since <tool_call>
	inValue                      // held is what may be the end of the value
	inDoubt                      // held, </tool_call> and tail may be the end of the call
)

// NewParser returns a parser of the output that follows a prompt. tools are
// the declarations that were in the prompt, inThink says how it ended.
func NewParser(tools []json.RawMessage, inThink bool) *Parser {
	p := &Parser{tools: declarations(tools), prose: stretch{kind: ContentDelta}}
	if inThink {
		p.think()
	}
	return p
}

// InThink says whether the output stands within reasoning.
func (p *Parser) InThink() bool { return p.prose.kind == ReasoningDelta }

// Text takes the next piece of text. The events are valid until the next call.
func (p *Parser) Text(s string) []Event {
	p.events = p.events[:0]
	p.text(s)
	p.flush()
	return p.events
}

// Control takes a control token, by its spelling. The events are valid until
// the next call.
func (p *Parser) Control(token string) []Event {
	p.events = p.events[:0]
	p.control(token)
	p.flush()
	return p.events
}

// Close ends the output. cut says that a limit ended it and not the model.
func (p *Parser) Close(cut bool) []Event {
	p.events = p.events[:0]
	switch {
	case p.state == inOpening && !cut:
		p.takeBack()
	case p.state == inDoubt && !cut:
		p.finish()
	}
	if p.state != inProse {
		p.emit(Event{Kind: CallTruncated, Call: p.calls})
	} else if p.prose.kind == ContentDelta && (p.prose.begun || p.calls == 0) {
		p.release()
	}
	return p.events
}

func (p *Parser) text(s string) {
	switch p.state {
	case inProse:
		p.write(s)
	case inOpening:
		p.held += s
		p.readOpening()
	case inValue:
		p.held += s
		p.readValue()
	case inDoubt:
		if strings.Trim(s, asciiSpace) == "" {
			p.tail = append(p.tail, s...)
			return
		}
		p.goOn()
		p.text(s)
	}
}

func (p *Parser) control(token string) {
	switch p.state {
	case inProse:
		p.controlInProse(token)
	case inOpening:
		if token == CallEnd && p.opening().atEnd {
			p.open(p.opening().function)
			p.finish()
			return
		}
		p.takeBack()
		p.control(token)
	case inValue:
		p.controlInValue(token)
	case inDoubt:
		if token == CallStart && p.call.quotes == 0 {
			p.finish()
		} else {
			p.goOn()
		}
		p.control(token)
	}
}

func (p *Parser) controlInProse(token string) {
	switch {
	case token == CallStart && p.tools != nil:
		p.state, p.held = inOpening, ""
	case token == ThinkEnd && (p.InThink() || !p.prose.begun):
		p.answer()
	case token == ThinkStart && !p.prose.begun:
		p.think()
	default:
		p.write(token)
	}
}

func (p *Parser) controlInValue(token string) {
	if token == CallEnd {
		g := p.call.gap(p.held)
		complete := g.parameterClosed && g.functionClosed
		switch {
		case g.atEnd && complete && p.call.quotes == 0:
			p.finish()
			return
		case g.atEnd:
			p.state, p.tail = inDoubt, p.tail[:0]
			return
		}
	}
	p.absorb(token)
}

func (p *Parser) emit(e Event) { p.events = append(p.events, e) }
