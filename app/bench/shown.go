package bench

import (
	"strings"
	"unicode"
)

// maxShown bounds what is shown of another program's text, in bytes.
const maxShown = 300

// Shown returns a text of another program as it may be printed: on one line,
// without what a terminal would obey, and cut where it is long.
func Shown(s string) string {
	cut := len(s) > maxShown
	if cut {
		s = s[:maxShown]
	}
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return unicode.ReplacementChar
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	s = strings.TrimSpace(s)
	if cut {
		s += "…"
	}
	return s
}

// shownError is an error of a connection, which may tell what was sent.
type shownError struct{ error }

func (e shownError) Error() string { return Shown(e.error.Error()) }

func (e shownError) Unwrap() error { return e.error }
