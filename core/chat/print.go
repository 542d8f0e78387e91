package chat

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// pythonJSON prints a JSON text as Python's json.dumps prints it.
func pythonJSON(in string) (string, error) {
	p := printer{reader: reader{in: in}}
	return p.all()
}

// relaxedJSON prints a JSON text that the model wrote: numbers stay as they
// are, so that the result is JSON for every reader, and Python's constants
// become JSON's.
func relaxedJSON(in string) (string, error) {
	p := printer{reader: reader{in: in, pythonWords: true}, keepNumbers: true}
	return p.all()
}

// argument is one argument of a tool call, printed as the template does.
type argument struct{ name, text string }

// parseArguments reads a JSON object. A string's text is the string itself,
// that of anything else is JSON.
func parseArguments(in string) ([]argument, error) {
	p := printer{reader: reader{in: in}}
	if err := p.begin(); err != nil {
		return nil, err
	}
	if p.at == len(in) {
		return nil, nil
	}
	if p.peek() != '{' {
		return nil, errors.New("arguments must be a JSON object")
	}
	var list []argument
	place := map[string]int{}
	err := p.members(func(key string) error {
		text, err := p.argument()
		if i, again := place[key]; again {
			list[i].text = text
			return err
		}
		place[key] = len(list)
		list = append(list, argument{key, text})
		return err
	})
	if err == nil {
		err = p.end()
	}
	return list, err
}

// printer prints what a reader reads.
type printer struct {
	reader
	out         []byte
	keepNumbers bool
}

func (p *printer) begin() error {
	if len(p.in) > maxJSONBytes {
		return fmt.Errorf("JSON has %d bytes, the most is %d", len(p.in), maxJSONBytes)
	}
	p.space()
	return nil
}

func (p *printer) all() (string, error) {
	err := p.begin()
	if err == nil {
		err = p.value()
	}
	if err == nil {
		err = p.end()
	}
	return string(p.out), err
}

func (p *printer) argument() (string, error) {
	if p.peek() == '"' {
		return p.string()
	}
	p.out = p.out[:0]
	err := p.value()
	return string(p.out), err
}

// skip reads a value and prints nothing.
func (p *printer) skip() error {
	start := len(p.out)
	err := p.value()
	p.out = p.out[:start]
	return err
}

func (p *printer) value() error {
	switch c := p.peek(); {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		s, err := p.string()
		p.out = appendQuoted(p.out, s)
		return err
	case c == '-' || '0' <= c && c <= '9':
		return p.numeral()
	}
	w, err := p.constant()
	p.out = append(p.out, w...)
	return err
}

func (p *printer) array() error {
	p.out = append(p.out, '[')
	start := len(p.out)
	err := p.elements(func() error {
		if len(p.out) > start {
			p.out = append(p.out, ", "...)
		}
		return p.value()
	})
	p.out = append(p.out, ']')
	return err
}

// object prints the members as they come. Only where a key came twice are
// they put together again.
func (p *printer) object() error {
	type span struct{ from, to int }
	var spans []span
	place := map[string]int{}
	start := len(p.out)
	p.out = append(p.out, '{')
	twice := false
	err := p.members(func(key string) error {
		if len(place) > 0 {
			p.out = append(p.out, ", "...)
		}
		from := len(p.out)
		p.out = append(appendQuoted(p.out, key), ": "...)
		err := p.value()
		now := span{from, len(p.out)}
		if i, again := place[key]; again {
			twice, spans[i] = true, now
			return err
		}
		place[key] = len(spans)
		spans = append(spans, now)
		return err
	})
	if twice {
		var members [][]byte
		for _, s := range spans {
			members = append(members, p.out[s.from:s.to])
		}
		p.out = append(p.out[:start+1], bytes.Join(members, []byte(", "))...)
	}
	p.out = append(p.out, '}')
	return err
}

func (p *printer) numeral() error {
	literal, float, err := p.number()
	switch {
	case err != nil:
		return err
	case p.keepNumbers:
		p.out = append(p.out, literal...)
	case float:
		p.out = appendFloat(p.out, literal)
	case literal == "-0":
		p.out = append(p.out, '0')
	case len(strings.TrimPrefix(literal, "-")) > maxDigits:
		return fmt.Errorf("an integer has more than %d digits", maxDigits)
	default:
		p.out = append(p.out, literal...)
	}
	return nil
}

// appendFloat prints a number as Python's repr of the nearest float64: the
// fewest digits that name it, with an exponent below 1e-4 and from 1e16 on.
func appendFloat(b []byte, literal string) []byte {
	f, _ := strconv.ParseFloat(literal, 64) // beyond the largest: infinite
	switch magnitude := math.Abs(f); {
	case math.IsInf(f, 1):
		return append(b, "Infinity"...)
	case math.IsInf(f, -1):
		return append(b, "-Infinity"...)
	case magnitude != 0 && (magnitude < 1e-4 || magnitude >= 1e16):
		return strconv.AppendFloat(b, f, 'e', -1, 64)
	}
	start := len(b)
	b = strconv.AppendFloat(b, f, 'f', -1, 64)
	if bytes.IndexByte(b[start:], '.') < 0 {
		b = append(b, ".0"...)
	}
	return b
}

func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s)
	return append(b, '"')
}

// appendEscaped escapes what JSON must, and nothing else. It looks at single
// bytes, so s may be any part of a string, cut anywhere.
func appendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	start := 0
	for i := range len(s) {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		b = append(b, s[start:i]...)
		start = i + 1
		if j := strings.IndexByte("\"\\\b\f\n\r\t", c); j >= 0 {
			b = append(b, '\\', `"\bfnrt`[j])
		} else {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	return append(b, s[start:]...)
}
