package server

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"calla/core/completion"
)

// chatLogProbs are the log-probabilities of the content's tokens.
type chatLogProbs struct {
	Content []tokenLogProb `json:"content"`
	Refusal *string        `json:"refusal"`
}

type tokenLogProb struct {
	topLogProb
	Top []topLogProb `json:"top_logprobs"`
}

type topLogProb struct {
	Token   string  `json:"token"`
	LogProb float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

func chatLogProbsOf(tokens []completion.Token) *chatLogProbs {
	return &chatLogProbs{Content: logProbsOf(tokens)}
}

func logProbsOf(tokens []completion.Token) []tokenLogProb {
	list := []tokenLogProb{}
	for _, t := range tokens {
		one := tokenLogProb{topLogProb: logProbOf(t), Top: []topLogProb{}}
		for _, top := range t.Top {
			one.Top = append(one.Top, logProbOf(top))
		}
		list = append(list, one)
	}
	return list
}

func logProbOf(t completion.Token) topLogProb {
	p := topLogProb{Token: tokenText(t.Bytes), LogProb: t.LogProb, Bytes: make([]int, len(t.Bytes))}
	for i, b := range t.Bytes {
		p.Bytes[i] = int(b)
	}
	return p
}

// tokenText shows a token's bytes as text. A token may end within a character;
// its bytes are then written out, as OpenAI does.
func tokenText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var s strings.Builder
	s.WriteString("bytes:")
	for _, c := range b {
		fmt.Fprintf(&s, `\x%02x`, c)
	}
	return s.String()
}
