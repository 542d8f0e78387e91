package schema

import (
	"sync"

	"calla/core/grammar"
	"calla/core/grammar/dfa"
)

// The lexemes that all grammars share, so that what a vocabulary finds out of
// them is found once.
var (
	anyString       = sync.OnceValue(func() *dfa.Bytes { return dfa.AnyJSON() })
	anyStringInCall = sync.OnceValue(func() *dfa.Bytes { return dfa.AnyJSON(parameterEnd) })
	anyText         = sync.OnceValue(func() *dfa.Bytes { return dfa.Anything().Bytes().Fill() })
	anyArgument     = sync.OnceValue(func() *dfa.Bytes {
		return must(dfa.NewMaker(dfaWork).Until(dfa.Anything(), argumentEnd, notInArgument...)).Bytes().Fill()
	})
	anyNumber  = sync.OnceValue(func() *grammar.Lexeme { return grammar.NewLexeme(dfa.AnyNumber().Bytes().Fill()) })
	whiteSpace = sync.OnceValue(func() *grammar.Lexeme {
		c := must(dfa.NewMaker(dfaWork).Pattern(`^(?: |\r?\n[ \t]{0,128})?$`))
		return grammar.NewLexeme(c.Bytes().Fill())
	})
)

// Prepare has a vocabulary find out what nearly every schema asks of it.
func Prepare(v *grammar.Vocabulary) {
	for _, b := range []*dfa.Bytes{anyString(), anyStringInCall(), anyArgument()} {
		v.Prepare(grammar.NewLexeme(b))
		v.Prepare(grammar.NewCountedLexeme(b, 0, 1))
	}
}

func must(c *dfa.Chars, err error) *dfa.Chars {
	if err != nil {
		panic("schema: a lexeme of our own: " + err.Error())
	}
	return c
}
