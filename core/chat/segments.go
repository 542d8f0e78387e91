package chat

import "strings"

// segments collects a prompt.
type segments struct {
	list []Segment
	open strings.Builder // the text segment that still grows
}

// markup adds a piece of the template: its control tokens are control tokens.
func (s *segments) markup(piece string) {
	for piece != "" {
		at, token := nextControl(piece)
		s.text(piece[:at])
		if token != "" {
			s.close()
			s.list = append(s.list, Segment{Text: token, Control: true})
		}
		piece = piece[at+len(token):]
	}
}

// text adds what may come from people: nothing in it is a control token.
func (s *segments) text(t string) { s.open.WriteString(t) }

// close ends the open text segment and returns the number of segments.
func (s *segments) close() int {
	if s.open.Len() > 0 {
		s.list = append(s.list, Segment{Text: s.open.String()})
		s.open.Reset()
	}
	return len(s.list)
}

// nextControl finds the first control token of a piece of the template; where
// there is none, the token is empty and its place the end.
func nextControl(piece string) (at int, token string) {
	for at = range len(piece) {
		if piece[at] != '<' {
			continue
		}
		for _, token := range controlTokens {
			if strings.HasPrefix(piece[at:], token) {
				return at, token
			}
		}
	}
	return len(piece), ""
}

var controlTokens = ControlTokens()
