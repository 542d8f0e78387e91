package schema

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"calla/core/grammar"
	"calla/core/tokenizer"
)

// realSize is the number of tokens of the real vocabulary.
const realSize = 248_077

// bigVocabulary returns a vocabulary of the real size: that of
// CALLA_TOKENIZER_CORPUS (see scripts/oracle/tokenizer_differential.py), or one
// made up of words, numbers and punctuation.
func bigVocabulary(b testing.TB) *grammar.Vocabulary {
	if folder := os.Getenv("CALLA_TOKENIZER_CORPUS"); folder != "" {
		return vocabularyOfFile(b, filepath.Join(folder, "full", "tokenizer.json"))
	}
	return vocabularyOf(b, words(realSize-firstWord))
}

func vocabularyOfFile(b testing.TB, name string) *grammar.Vocabulary {
	text, err := os.ReadFile(name)
	if err != nil {
		b.Fatal(err)
	}
	t, err := tokenizer.Load(text, nil)
	if err != nil {
		b.Fatal(err)
	}
	id := func(name string) int32 {
		id, ok := t.TokenID(name)
		if !ok {
			b.Fatalf("the vocabulary has no %s", name)
		}
		return id
	}
	v, err := grammar.NewVocabulary(grammar.Tokens{
		Count: t.VocabSize(), Bytes: t.Bytes,
		Controls: []int32{CallStart: id("<tool_call>"), CallEnd: id("</tool_call>")},
		Apart:    func(i int32) bool { known, ok := t.TokenID(string(t.Bytes(i))); return ok && known == i },
		Ends:     []int32{id("<|im_end|>")},
	})
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// words makes n different tokens: words, a space before most, some of other
// scripts, and runs of the punctuation of JSON.
func words(n int) []string {
	const marks = "\"{}[],:. \t-\n"
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[string]bool{}
	var all []string
	for len(all) < n {
		var s strings.Builder
		switch rng.IntN(10) {
		case 0:
			for range 1 + rng.IntN(4) {
				s.WriteByte(marks[rng.IntN(len(marks))])
			}
		default:
			if rng.IntN(3) > 0 {
				s.WriteByte(' ')
			}
			base := rune('a')
			if rng.IntN(4) == 0 {
				base = 0x4e00
			}
			for range 1 + rng.IntN(8) {
				s.WriteRune(base + rng.Int32N(26))
			}
		}
		if t := s.String(); len(t) > 1 && !seen[t] {
			seen[t] = true
			all = append(all, t)
		}
	}
	return all
}

// wide is a schema of n properties of all kinds.
func wide(n int) json.RawMessage {
	kinds := []string{
		`{"type":"string"}`, `{"type":"integer","minimum":0,"maximum":%d}`, `{"type":"string","maxLength":%d}`, `{"type":["string","null"]}`,
		`{"type":"array","items":{"type":"string"},"maxItems":5}`, `{"enum":["low","medium","high %d"]}`, `{"type":"string","pattern":"^[A-Z]{2}-[0-9]{1,8}x?%d$"}`,
		`{"type":"number"}`, `{"type":"boolean"}`, `{"type":"object","properties":{"id":{"type":"integer"},"name":{"type":"string"}},"required":["id","name"],"additionalProperties":false}`,
	}
	var properties, required []string
	for i := range n {
		k := kinds[i%len(kinds)]
		if strings.Contains(k, "%d") {
			k = fmt.Sprintf(k, 100+i)
		}
		properties = append(properties, fmt.Sprintf(`"property_%d":%s`, i, k))
		if i%3 > 0 {
			required = append(required, fmt.Sprintf(`"property_%d"`, i))
		}
	}
	return json.RawMessage(`{"type":"object","properties":{` + strings.Join(properties, ",") + `},"required":[` + strings.Join(required, ",") + `],"additionalProperties":false}`)
}

const ordinary = `{"type":"object","properties":{
	"name":{"type":"string"},"email":{"type":"string","format":"email"},"age":{"type":["integer","null"],"minimum":0,"maximum":150},
	"kind":{"enum":["person","company"]},"tags":{"type":"array","items":{"type":"string","maxLength":20},"maxItems":10},
	"address":{"$ref":"#/$defs/address"},"created":{"type":"string","format":"date-time"}},
	"required":["name","email","age","kind","tags","address","created"],"additionalProperties":false,
	"$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"},"zip":{"type":"string","pattern":"^[0-9]{5}$"}},
	"required":["street","city","zip"],"additionalProperties":false}}}`

// pick returns a random token of a mask.
func pick(rng *rand.Rand, mask grammar.Mask) int32 {
	n := mask.Count()
	if n == 0 {
		return -1
	}
	skip := rng.IntN(n)
	for t := range int32(64 * len(mask)) {
		if mask.Has(t) {
			if skip == 0 {
				return t
			}
			skip--
		}
	}
	return -1
}

// BenchmarkMask is what masks cost in an answer to a schema of 200 properties,
// at the real vocabulary's size: where the schema is new, and where its masks
// were found before. An iteration is a whole answer. Of each token the quickest
// time of all iterations counts, since on a busy machine the others tell of the
// machine: us/mask is their mean, worst-us the largest of them.
func BenchmarkMask(b *testing.B) {
	v := bigVocabulary(b)
	Prepare(v)
	g, err := Output{Answer: wide(200)}.Grammar()
	a := bind(b, v, g, err)
	tokens := randomAnswer(b, a, v, 1500)
	mask := grammar.NewMask(v.Size())
	for _, known := range []bool{false, true} {
		b.Run(fmt.Sprintf("known=%v", known), func(b *testing.B) {
			quickest := make([]time.Duration, len(tokens))
			for b.Loop() {
				if !known {
					a, _ = v.Bind(g)
				}
				m := a.Matcher()
				for i, t := range tokens {
					start := time.Now()
					if err := m.Allowed(mask); err != nil {
						b.Fatal(err)
					}
					if err := m.Next(t); err != nil {
						b.Fatal(err)
					}
					if took := time.Since(start); quickest[i] == 0 || took < quickest[i] {
						quickest[i] = took
					}
				}
			}
			var sum time.Duration
			for _, d := range quickest {
				sum += d
			}
			b.ReportMetric(float64(sum.Nanoseconds())/1000/float64(len(tokens)), "us/mask")
			b.ReportMetric(float64(slices.Max(quickest).Nanoseconds())/1000, "worst-us")
		})
	}
}

// randomAnswer returns the tokens of a random answer, at most n.
func randomAnswer(b *testing.B, a *grammar.Automaton, v *grammar.Vocabulary, n int) (tokens []int32) {
	rng := rand.New(rand.NewPCG(7, 7))
	mask := grammar.NewMask(v.Size())
	for m := a.Matcher(); len(tokens) < n && !m.Complete(); {
		if err := m.Allowed(mask); err != nil {
			b.Fatal(err)
		}
		t := pick(rng, mask)
		if err := m.Next(t); err != nil {
			b.Fatal(err)
		}
		tokens = append(tokens, t)
	}
	return tokens
}

// BenchmarkFirstUse is the time from a schema to its first mask.
func BenchmarkFirstUse(b *testing.B) {
	v := bigVocabulary(b)
	mask := grammar.NewMask(v.Size())
	for name, schema := range map[string]json.RawMessage{"ordinary": json.RawMessage(ordinary), "properties=200": wide(200), "any": json.RawMessage(`{}`)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				g, err := Output{Answer: schema}.Grammar()
				a := bind(b, v, g, err)
				if err := a.Matcher().Allowed(mask); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVocabulary is what a server does once.
func BenchmarkVocabulary(b *testing.B) {
	list := words(realSize - firstWord)
	for b.Loop() {
		vocabularyOf(b, list)
	}
}
