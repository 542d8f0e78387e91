package chat

// call is a tool call that is being read.
type call struct {
	declaration *declaration // nil where the tool is not declared
	given       map[string]bool
	quotes      int  // the number of <tool_call> in the value that have no end yet
	fresh       bool // the value's first newline is still to come
	streams     bool // the value is a string and goes out as it comes
	kinds       kinds
	value       []byte // of a value that does not stream
	json        []byte // arguments that were not yet emitted
}

// open begins a call, and the content that may come after it.
func (p *Parser) open(function string) {
	p.call = call{declaration: p.tools[function], given: map[string]bool{}}
	p.answer()
	p.emit(Event{Kind: CallOpened, Call: p.calls, Name: function})
}

// finish ends the call, and the parameter being read if there is one.
func (p *Parser) finish() {
	c := &p.call
	if len(c.given) == 0 {
		c.json = append(c.json, '{')
	} else {
		c.endParameter()
	}
	c.json = append(c.json, '}')
	p.flush()
	p.emit(Event{Kind: CallFinished, Call: p.calls})
	p.calls++
	p.state, p.held = inProse, ""
}

// flush emits the arguments read so far.
func (p *Parser) flush() {
	if len(p.call.json) > 0 {
		p.emit(Event{Kind: ArgumentsDelta, Call: p.calls, Text: string(p.call.json)})
		p.call.json = p.call.json[:0]
	}
}

// takeBack returns as text what was taken for the opening of a call.
func (p *Parser) takeBack() {
	p.state = inProse
	p.write(CallStart + p.held)
}

// opening matches held with the opening of a call.
func (p *Parser) opening() opening {
	return matchOpening(p.held, func(function string) bool {
		return !p.InThink() || p.tools[function] != nil
	})
}

func (p *Parser) readOpening() {
	o := p.opening()
	switch o.verdict {
	case no:
		p.takeBack()
	case yes:
		p.open(o.function)
		p.call.parameter(o.parameter)
		p.state, p.held = inValue, p.held[o.length:]
		p.readValue()
	}
}

// readValue reads held up to what may be the end of the value.
func (p *Parser) readValue() {
	c := &p.call
	for p.held != "" {
		if c.fresh {
			c.fresh = false
			if p.held[0] == '\n' {
				p.held = p.held[1:]
				continue
			}
		}
		at := nextGap(p.held)
		c.put(p.held[:at])
		p.held = p.held[at:]
		if p.held == "" {
			return
		}
		g := c.gap(p.held)
		switch g.verdict {
		case maybe:
			return
		case yes:
			c.endParameter()
			c.parameter(g.parameter)
			p.held = p.held[g.length:]
		case no:
			c.put(p.held[:1])
			p.held = p.held[1:]
		}
	}
}

// absorb makes held and a control token part of the value.
func (p *Parser) absorb(token string) {
	c := &p.call
	c.put(p.held)
	c.put(token)
	c.fresh, p.held = false, ""
	switch {
	case token == CallStart:
		c.quotes++
	case token == CallEnd && c.quotes > 0:
		c.quotes--
	}
}

// goOn takes a </tool_call> in doubt for part of the value.
func (p *Parser) goOn() {
	p.absorb(CallEnd)
	p.state, p.held = inValue, string(p.tail)
	p.readValue()
}

// parameter begins an argument.
func (c *call) parameter(name string) {
	if len(c.given) == 0 {
		c.json = append(c.json, '{')
	} else {
		c.json = append(c.json, ", "...)
	}
	c.given[name] = true
	c.json = append(appendQuoted(c.json, name), ": "...)
	c.kinds = c.declaration.kinds(name)
	c.fresh, c.streams, c.value = true, c.kinds == isString, c.value[:0]
	if c.streams {
		c.json = append(c.json, '"')
	}
}

func (c *call) endParameter() {
	if c.streams {
		c.json = append(c.json, '"')
	} else {
		c.json = append(c.json, c.kinds.convert(string(c.value))...)
	}
}

// put adds to the value.
func (c *call) put(s string) {
	if c.streams {
		c.json = appendEscaped(c.json, s)
	} else {
		c.value = append(c.value, s...)
	}
}
