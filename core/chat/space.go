package chat

import (
	"strings"
	"unicode"
)

// strip is Python's str.strip.
func strip(s string) string { return strings.TrimFunc(s, isPythonSpace) }

// isPythonSpace is Python's str.isspace, to which the four separators of
// ASCII are white space too.
func isPythonSpace(r rune) bool {
	return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f
}
