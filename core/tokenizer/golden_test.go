package tokenizer

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// eachLine calls line with each value of a file of JSON lines, which may be
// compressed, and fails the test on a file without any.
func eachLine[T any](tb testing.TB, line func(T), elem ...string) {
	tb.Helper()
	name := filepath.Join(elem...)
	f, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var in io.Reader = bufio.NewReader(f)
	if strings.HasSuffix(name, ".gz") {
		if in, err = gzip.NewReader(in); err != nil {
			tb.Fatalf("%s: %v", name, err)
		}
	}
	lines := 0
	for d := json.NewDecoder(in); ; lines++ {
		var v T
		if err := d.Decode(&v); err == io.EOF {
			break
		} else if err != nil {
			tb.Fatalf("%s: line %d: %v", name, lines+1, err)
		}
		line(v)
	}
	if lines == 0 {
		tb.Fatalf("%s: no lines", name)
	}
}

// diffIDs reports ids that differ from the reference's.
func diffIDs(tb testing.TB, what, text string, want, got []int32) {
	tb.Helper()
	if !slices.Equal(want, got) {
		tb.Errorf("%s of %+.300q: -want +got\n%.2000s", what, text, cmp.Diff(want, got))
	}
}

// pieces cuts text as encode does.
func pieces(text string) []string {
	var all []string
	for text = nfc(text); text != ""; {
		n := pieceLen(text)
		all = append(all, text[:n])
		text = text[n:]
	}
	return all
}

// TestGolden compares with what the reference made of the same texts and ids;
// testdata/README.md says how.
func TestGolden(t *testing.T) {
	tiny, demo := load(t, tinyDir), load(t, demoDir)
	type encoding struct {
		Text              string
		Pieces            []string
		Tiny, Demo, Added []int32
	}
	eachLine(t, func(want encoding) {
		if got := pieces(want.Text); !slices.Equal(want.Pieces, got) {
			t.Errorf("pieces of %+.300q:\n got %+.500q,\nwant %+.500q", want.Text, got, want.Pieces)
		}
		diffIDs(t, "tiny: Encode", want.Text, want.Tiny, tiny.Encode(want.Text))
		diffIDs(t, "demo: Encode", want.Text, want.Demo, demo.Encode(want.Text))
		diffIDs(t, "demo: EncodeWithAdded", want.Text, want.Added, demo.EncodeWithAdded(want.Text))
	}, "testdata", "encode.jsonl.gz")

	type decoding struct {
		IDs           []int32
		Text, Skipped string
	}
	eachLine(t, func(want decoding) {
		if got := demo.Decode(want.IDs, false); got != want.Text {
			t.Errorf("Decode(%v, false) = %+q, want %+q", want.IDs, got, want.Text)
		}
		if got := demo.Decode(want.IDs, true); got != want.Skipped {
			t.Errorf("Decode(%v, true) = %+q, want %+q", want.IDs, got, want.Skipped)
		}
	}, "testdata", "decode.jsonl.gz")
}
