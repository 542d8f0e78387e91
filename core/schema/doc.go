// Package schema makes grammars of JSON Schemas: of the JSON texts that fit a
// schema, and of tool calls whose arguments fit one.
//
// # What is in a grammar
//
// Every text of a grammar is JSON that fits its schema. Of all such texts it has
// those of one form, which is how models write, so that each choice is about
// content:
//   - members of an object come in the order in which the schema declares them,
//     those that it does not declare after them;
//   - white space stands after { [ , : and before ] }: none, one space, or a new
//     line and what it is indented by;
//   - names, constants and strings that must match something have each
//     character in its shortest spelling; other strings have any;
//   - numbers have at most 18 digits before the point, 16 behind it and two of
//     an exponent, unless their bounds say otherwise; integers are written
//     without point and exponent;
//   - values stand within each other to grammar.MaxDepth at most.
//
// # Which schemas there are
//
// A schema is checked against its meta-schema first. A keyword, or a format,
// that is not held to is an error that names it; none is passed over but those
// that only describe. What cannot be satisfied, and what is unreasonably large
// or laborious, is an error too.
package schema

import (
	"fmt"
	"strings"
)

// Error is a fault of a schema.
type Error struct {
	Tool  int    // the index of the tool whose parameters it is in, or -1
	At    string // where, as "properties.age.multipleOf"; empty for the whole
	Fault string // what is wrong and what is wanted
}

func (e *Error) Error() string {
	at := e.At
	if e.Tool >= 0 {
		at = strings.TrimSuffix(fmt.Sprintf("tool %d: %s", e.Tool, at), ": ")
	}
	if at == "" {
		return "schema: " + e.Fault
	}
	return "schema: " + at + ": " + e.Fault
}

// path is a place in a schema.
type path struct {
	up   *path
	step string
}

func (p *path) to(steps ...string) *path {
	for _, s := range steps {
		p = &path{p, s}
	}
	return p
}

// String writes the place for people.
func (p *path) String() string { return strings.Join(p.steps(), ".") }

func (p *path) steps() []string {
	if p == nil {
		return nil
	}
	return append(p.up.steps(), p.step)
}

// pointer writes the place as a JSON pointer.
func (p *path) pointer() string {
	var b strings.Builder
	for _, s := range p.steps() {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(s))
	}
	return b.String()
}

func (p *path) fault(format string, args ...any) *Error {
	return &Error{Tool: -1, At: p.String(), Fault: fmt.Sprintf(format, args...)}
}
