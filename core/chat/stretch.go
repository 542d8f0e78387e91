package chat

import "strings"

const asciiSpace = " \t\n\v\f\r"

// stretch is reasoning or content between two pieces of markup.
type stretch struct {
	kind  EventKind
	lead  string // white space that is dropped while nothing has begun
	begun bool
	space []byte // white space that may turn out to be the stretch's end
}

// think begins reasoning.
func (p *Parser) think() { p.prose = stretch{kind: ReasoningDelta, lead: asciiSpace} }

// answer begins content, after reasoning or a call.
func (p *Parser) answer() {
	p.prose = stretch{kind: ContentDelta}
	if !p.answered {
		p.prose.lead = "\n"
	}
}

// write continues the stretch.
func (p *Parser) write(s string) {
	if !p.prose.begun && len(p.prose.space) == 0 {
		s = strings.TrimLeft(s, p.prose.lead)
	}
	body := strings.TrimRight(s, asciiSpace)
	if body == "" {
		p.prose.space = append(p.prose.space, s...)
		return
	}
	p.emit(Event{Kind: p.prose.kind, Text: string(p.prose.space) + body})
	p.prose.space = append(p.prose.space[:0], s[len(body):]...)
	p.prose.begun = true
	p.answered = p.answered || p.prose.kind == ContentDelta
}

// release emits the white space at the end of the output.
func (p *Parser) release() {
	if len(p.prose.space) > 0 {
		p.emit(Event{Kind: p.prose.kind, Text: string(p.prose.space)})
	}
}
