package main

import "strings"

// kind says what a token is.
type kind int

const (
	ident kind = iota
	number
	str
	punct
)

// token is a lexeme of the source; comments and preprocessor lines are skipped.
type token struct {
	kind     kind
	text     string
	pos, end int
}

func isIdent(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lex splits MSL source into tokens. Punctuation is one byte a token.
func lex(s string) []token {
	var out []token
	lineStart := true
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\n':
			lineStart = true
			i++
			continue
		case c == ' ' || c == '\t' || c == '\r':
			i++
			continue
		case strings.HasPrefix(s[i:], "//"):
			for i < len(s) && s[i] != '\n' {
				i++
			}
			continue
		case strings.HasPrefix(s[i:], "/*"):
			if j := strings.Index(s[i+2:], "*/"); j >= 0 {
				i += j + 4
			} else {
				i = len(s)
			}
			continue
		case c == '#' && lineStart:
			for i < len(s) && s[i] != '\n' {
				if s[i] == '\\' && i+1 < len(s) && s[i+1] == '\n' {
					i++
				}
				i++
			}
			continue
		}
		lineStart = false
		j := i + 1
		k := punct
		switch {
		case isIdent(c):
			k = ident
			if c >= '0' && c <= '9' {
				k = number
			}
			for j < len(s) && (isIdent(s[j]) || k == number && s[j] == '.') {
				j++
			}
		case c == '"' || c == '\'':
			k = str
			for j < len(s) && s[j] != c {
				if s[j] == '\\' {
					j++
				}
				j++
			}
			j++
		}
		if j > len(s) {
			j = len(s)
		}
		out = append(out, token{k, s[i:j], i, j})
		i = j
	}
	return out
}
