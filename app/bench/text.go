package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
)

// words are short and common, so that each is one token to most tokenizers.
var words = strings.Fields(`the of and to in is you that it he was for on are with as his they at be this
	have from or one had by word but not what all were we when your can said there use an each which she do
	how their if will up other about out many then them these so some her would make like him into time has
	look two more write go see number no way could people my than first water been call who oil its now find`)

// text returns so many words, the same for a run in every process but for the
// first line, which seed makes another each time: no cache has the prompt's
// beginning. The last line asks for an answer that goes on.
func text(seed uint64, run, count int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%016x is the number of this text.\n", rand.New(rand.NewPCG(seed, uint64(run))).Uint64())
	r := rand.New(rand.NewPCG(uint64(run), uint64(count)))
	for i := range count {
		if i > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(words[r.IntN(len(words))])
	}
	b.WriteString("\nCount on to five hundred and write nothing else: 1 2 3 4 5 6 7 8 9 10 11 12")
	return b.String()
}

// sizing says how many words make a text of so many tokens, to one tokenizer.
type sizing struct {
	head    float64 // tokens around the words
	perWord float64
}

// The words of the texts by which a sizing is found.
const (
	fewWords  = 20
	manyWords = 180
)

// sizingOf asks a server how many tokens two texts are.
func sizingOf(ctx context.Context, s Asked, seed uint64) (sizing, error) {
	few, err := s.Ask(ctx, text(seed, -1, fewWords), 1)
	if err != nil && !errors.Is(err, errEmpty) { // counts are all that is wanted
		return sizing{}, err
	}
	many, err := s.Ask(ctx, text(seed, -2, manyWords), 1)
	if err != nil && !errors.Is(err, errEmpty) {
		return sizing{}, err
	}
	z := sizing{perWord: float64(many.Prompt-few.Prompt) / (manyWords - fewWords)}
	if z.perWord < 0.5 {
		return sizing{}, fmt.Errorf("bench: our server: usage counts %d tokens for %d words and %d for %d: these are not the texts' tokens", few.Prompt, fewWords, many.Prompt, manyWords)
	}
	z.head = float64(few.Prompt) - z.perWord*fewWords
	return z, nil
}

// words returns how many make a prompt of so many tokens, at least one.
func (z sizing) words(tokens int) int {
	return max(1, int((float64(tokens)-z.head)/z.perWord+0.5))
}
