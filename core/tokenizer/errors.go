package tokenizer

import (
	"fmt"
	"unicode/utf8"
)

// clip shortens what a message quotes out of a file, which may be of any length.
func clip(s string) string {
	const most = 200
	if len(s) <= most {
		return s
	}
	n := most
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

func quote[T string | []byte](s T) string { return fmt.Sprintf("%q", clip(string(s))) }
