package completion

import "strings"

// stopper looks for the texts that end a completion. It holds back what may
// yet become one, so that no part of it is ever shown.
type stopper struct {
	texts []string
	held  string
}

// add takes more text. It returns what can be shown, and, once one is
// complete, the stop text that ends it.
func (s *stopper) add(text string) (show, stop string) {
	s.held += text
	at, stop := s.find()
	// Another stop text may have begun earlier and still be growing.
	safe := len(s.held)
	for _, t := range s.texts {
		safe = min(safe, len(s.held)-overlap(s.held, t))
	}
	if stop != "" && at <= safe {
		show, s.held = s.held[:at], ""
		return show, stop
	}
	show, s.held = s.held[:safe], s.held[safe:]
	return show, ""
}

// flush returns what was held back, at the end of the text, and the stop text
// in it, if there is one: it waited for an earlier one that never came.
func (s *stopper) flush() (show, stop string) {
	at, stop := s.find()
	show, s.held = s.held[:at], ""
	return show, stop
}

// find returns the stop text in what is held that begins first, of several
// there the one that is complete first, and where; without one, the end.
func (s *stopper) find() (at int, stop string) {
	at = len(s.held)
	for _, t := range s.texts {
		if i := strings.Index(s.held, t); i >= 0 && (i < at || i == at && len(t) < len(stop)) {
			at, stop = i, t
		}
	}
	return at, stop
}

// overlap returns the length of the longest proper beginning of t that text
// ends with. Stop texts are short, so trying each is cheap.
func overlap(text, t string) int {
	for n := min(len(t)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, t[:n]) {
			return n
		}
	}
	return 0
}
