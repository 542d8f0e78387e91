package chat

import "strings"

// The tags of the call format. They are ordinary text.
const (
	functionStart  = "<function="
	functionEnd    = "</function>"
	parameterStart = "<parameter="
	parameterEnd   = "</parameter>"
)

// maxTags bounds what is held back to find out whether it is markup: tags,
// names and white space. Longer stretches are none.
const maxTags = 1024

// verdict says whether a text begins with what is looked for: maybe where it
// ends too early to tell.
type verdict uint8

const (
	no verdict = iota
	maybe
	yes
)

// cursor matches the beginning of a text.
type cursor struct {
	s  string
	at int
}

func (c *cursor) tag(t string) verdict {
	rest := c.s[c.at:]
	switch {
	case strings.HasPrefix(rest, t):
		c.at += len(t)
		return yes
	case strings.HasPrefix(t, rest):
		return maybe
	}
	return no
}

// name reads a name and the > after it.
func (c *cursor) name() (string, verdict) {
	rest := c.s[c.at:]
	end := strings.IndexAny(rest, "<>\r\n")
	switch {
	case end < 0:
		return "", maybe
	case end == 0 || rest[end] != '>':
		return "", no
	}
	c.at += end + 1
	return rest[:end], yes
}

func (c *cursor) space() {
	c.at = len(c.s) - len(strings.TrimLeft(c.s[c.at:], asciiSpace))
}

func (c *cursor) ended() bool { return c.at == len(c.s) }

// bounded turns a verdict on the first length bytes into no where they are too
// many. An open question is about all of the text.
func (c *cursor) bounded(v verdict) verdict {
	if v == maybe && len(c.s) > maxTags || v == yes && c.at > maxTags {
		return no
	}
	return v
}

// opening is what follows <tool_call>.
type opening struct {
	verdict             verdict // yes: up to the first parameter's value
	function, parameter string
	length              int
	atEnd               bool // maybe, and </tool_call> would end a call without parameters
}

// matchOpening matches <function=NAME> and the first <parameter=KEY> or
// </function>. admits says which names count.
func matchOpening(s string, admits func(function string) bool) opening {
	c := cursor{s: s}
	o := c.opening(admits)
	o.verdict = c.bounded(o.verdict)
	o.atEnd = o.atEnd && o.verdict == maybe
	o.length = c.at
	return o
}

func (c *cursor) opening(admits func(function string) bool) (o opening) {
	c.space()
	if o.verdict = c.tag(functionStart); o.verdict != yes {
		return o
	}
	if o.function, o.verdict = c.name(); o.verdict != yes {
		return o
	}
	if !admits(o.function) {
		o.verdict = no
		return o
	}
	c.space()
	switch c.tag(parameterStart) {
	case yes:
		o.parameter, o.verdict = c.name()
		return o
	case maybe:
		o.verdict = maybe
		return o
	}
	if o.verdict = c.tag(functionEnd); o.verdict == yes {
		c.space()
		o.atEnd, o.verdict = c.ended(), no
		if o.atEnd {
			o.verdict = maybe
		}
	}
	return o
}

// gap is what stands between a value and what follows it.
type gap struct {
	verdict                         verdict // yes: up to the next parameter's value
	parameter                       string
	length                          int
	parameterClosed, functionClosed bool
	atEnd                           bool // maybe, and </tool_call> would end the call
}

// nextGap returns the first place in s where a gap may begin, or its end.
func nextGap(s string) int {
	if i := strings.IndexAny(s, "\n<"); i >= 0 {
		return i
	}
	return len(s)
}

// gap matches s, which begins where nextGap says.
func (c *call) gap(s string) gap {
	if s == "" {
		return gap{verdict: maybe}
	}
	at := cursor{s: s}
	g := c.match(&at)
	g.verdict = at.bounded(g.verdict)
	g.atEnd = g.verdict == maybe && (g.parameterClosed || g.functionClosed) && at.ended()
	g.length = at.at
	return g
}

func (c *call) match(at *cursor) (g gap) {
	ownLine := at.tag("\n") == yes
	switch at.tag(parameterEnd) {
	case yes:
		g.parameterClosed = true
		at.space()
	case maybe:
		g.verdict = maybe
		return g
	}
	switch at.tag(parameterStart) {
	case yes:
		if g.parameter, g.verdict = at.name(); g.verdict == yes {
			g.verdict = c.follows(g, ownLine, at.s[at.at:])
		}
		return g
	case maybe:
		g.verdict = maybe
		return g
	}
	if g.verdict = at.tag(functionEnd); g.verdict == yes {
		g.functionClosed = true
		at.space()
		g.verdict = no
		if at.ended() {
			g.verdict = maybe
		}
	}
	return g
}

// follows says whether the parameter of a gap is the next one. Where the last
// one was not closed, it takes more to believe that.
func (c *call) follows(g gap, ownLine bool, rest string) verdict {
	switch {
	case c.given[g.parameter]:
		return no
	case g.parameterClosed:
		return yes
	case !ownLine || !c.declaration.has(g.parameter):
		return no
	case rest == "":
		return maybe
	case rest[0] != '\n':
		return no
	}
	return yes
}
