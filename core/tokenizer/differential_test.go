package tokenizer

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// corpusDir returns the folder that scripts/oracle/tokenizer_differential.py
// fills, which is too large to keep in the repository.
func corpusDir(tb testing.TB) string {
	tb.Helper()
	const variable = "CALLA_TOKENIZER_CORPUS"
	dir := os.Getenv(variable)
	if dir == "" {
		tb.Skipf("%s is not set: make a folder with scripts/oracle/tokenizer_differential.py and set it to that", variable)
	}
	return dir
}

// loadLarge loads one of the vocabularies of corpusDir.
func loadLarge(tb testing.TB, name string) *Tokenizer {
	tb.Helper()
	data := readFile(tb, corpusDir(tb), name, "tokenizer.json")
	start := time.Now()
	t, err := Load(data, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Logf("%s: %d tokens out of %d bytes in %v", name, t.VocabSize(), len(data), time.Since(start))
	return t
}

func TestLargeVocabularies(t *testing.T) {
	for _, name := range []string{"qwen3", "full"} {
		t.Run(name, func(t *testing.T) {
			tok := loadLarge(t, name)
			compareEncode(t, tok, filepath.Join(corpusDir(t), name, "encode.jsonl"))
			compareDecode(t, tok, filepath.Join(corpusDir(t), name, "decode.jsonl"))
		})
	}
}

func compareEncode(t *testing.T, tok *Tokenizer, name string) {
	type encoding struct {
		Text       string
		IDs, Added []int32
	}
	eachLine(t, func(want encoding) {
		diffIDs(t, "Encode", want.Text, want.IDs, tok.Encode(want.Text))
		if want.Added == nil {
			want.Added = want.IDs
		}
		diffIDs(t, "EncodeWithAdded", want.Text, want.Added, tok.EncodeWithAdded(want.Text))
	}, name)
}

func compareDecode(t *testing.T, tok *Tokenizer, name string) {
	type decoding struct {
		IDs           []int32
		Text, Skipped string
	}
	eachLine(t, func(want decoding) {
		if got := tok.Decode(want.IDs, false); got != want.Text {
			t.Errorf("Decode(%v, false) = %+q, want %+q", want.IDs, got, want.Text)
		}
		if got := tok.Decode(want.IDs, true); got != want.Skipped {
			t.Errorf("Decode(%v, true) = %+q, want %+q", want.IDs, got, want.Skipped)
		}
	}, name)
}

// TestCodePoints puts every code point before the normaliser and the pattern.
func TestCodePoints(t *testing.T) {
	type points struct {
		Text, Normal string
		Lengths      []int
	}
	eachLine(t, func(want points) {
		if want.Normal == "" {
			want.Normal = want.Text
		}
		if got := nfc(want.Text); got != want.Normal {
			i := commonPrefix(got, want.Normal)
			t.Fatalf("nfc of %+.20q...: %+.60q, want %+.60q", want.Text, got[i:], want.Normal[i:])
		}
		rest := want.Normal
		for _, length := range want.Lengths {
			if got := pieceLen(rest); got != length {
				t.Fatalf("piece at %+.60q: %d bytes, want %d", rest, got, length)
			}
			rest = rest[length:]
		}
	}, corpusDir(t), "points.jsonl")
}

func commonPrefix(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}
