package tokenizer

import (
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// BenchmarkEncode encodes ordinary text on one core.
func BenchmarkEncode(b *testing.B) {
	b.Run("demo", func(b *testing.B) { benchmarkEncode(b, load(b, demoDir)) })
	b.Run("full", func(b *testing.B) { benchmarkEncode(b, loadLarge(b, "full")) })
}

func benchmarkEncode(b *testing.B, tok *Tokenizer) {
	for _, in := range []struct{ name, text string }{
		{"code", sources(b, "../*/*.go")},
		{"prose", sources(b, "../model/SPEC.md") + sources(b, "../../*/*/*.md")},
		{"words", tokenText(tok, unicode.Latin, " ", 2)},
		{"ideographs", tokenText(tok, unicode.Han, "，", 9)},
	} {
		b.Run(in.name, func(b *testing.B) {
			if in.text == "" {
				b.Skip("the vocabulary has no tokens of that script")
			}
			b.SetBytes(int64(len(in.text)))
			tokens := 0
			for b.Loop() {
				tokens = len(tok.Encode(in.text))
			}
			b.ReportMetric(float64(len(in.text))/float64(tokens), "bytes/token")
		})
	}
}

// sources joins the files of a pattern.
func sources(tb testing.TB, pattern string) string {
	tb.Helper()
	names, err := filepath.Glob(pattern)
	if err != nil || len(names) == 0 {
		tb.Fatalf("%s: no files (%v)", pattern, err)
	}
	var text strings.Builder
	for _, name := range names {
		text.Write(readFile(tb, name))
	}
	return text.String()
}

// tokenText joins random tokens of one script, up to so many between two
// separators: words that hardly come again, so that the cache is of no use.
func tokenText(tok *Tokenizer, script *unicode.RangeTable, separator string, most int) string {
	var words []string
	for id := range int32(tok.VocabSize()) {
		word := tok.vocab.token(id)
		if utf8.ValidString(word) && !strings.ContainsFunc(word, func(r rune) bool { return !unicode.Is(script, r) }) {
			words = append(words, word)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	var text strings.Builder
	for len(words) > 0 && text.Len() < 1<<20 {
		for range 1 + random.IntN(most) {
			text.WriteString(words[random.IntN(len(words))])
		}
		text.WriteString(separator)
	}
	return text.String()
}

// runs are what makes a merge loop, a backtracking pattern or a normaliser
// quadratic.
var runs = []struct{ name, unit string }{
	{"one letter", "a"},
	{"two letters", "th"},
	{"spaces", " "},
	{"newlines", "\n"},
	{"digits", "7"},
	{"symbols", "="},
	{"one emoji", "👍"},
	{"one ideograph", "中"},
	{"marks in order", "\u0301"},
	{"marks out of order", "\u0301\u0323"},
	{"decomposed letters", "e\u0301"},
	{"jamo", "\u1112\u1161\u11ab"},
	{"vowel jamo", "\u1161"},
	{"marks that are late", "\u0898\u0301"},
	{"apostrophes", "'"},
	{"beginnings of an added token", "<|im_"},
	{"broken UTF-8", "\xe2\x82"},
}

// repeat repeats a unit up to a length in bytes.
func repeat(unit string, length int) string { return strings.Repeat(unit, length/len(unit)) }

func BenchmarkRuns(b *testing.B) {
	tok := load(b, demoDir)
	for _, run := range runs {
		b.Run(run.name, func(b *testing.B) {
			text := repeat(run.unit, 1<<20)
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				tok.EncodeWithAdded(text)
			}
		})
	}
}

// BenchmarkDecode decodes one token at a time, as a reply is streamed.
func BenchmarkDecode(b *testing.B) {
	tok := load(b, demoDir)
	text := sources(b, "../model/SPEC.md")
	ids := tok.Encode(text)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		d := tok.NewDecoder(true)
		for _, id := range ids {
			d.Add(id)
		}
		d.Flush()
	}
}

// BenchmarkLoad loads a file of the real one's size.
func BenchmarkLoad(b *testing.B) {
	data := readFile(b, corpusDir(b), "full", "tokenizer.json")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Load(data, nil); err != nil {
			b.Fatal(err)
		}
	}
}
