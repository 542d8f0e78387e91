package bench

import (
	"context"
	"errors"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	firsts := map[string]bool{}
	for run := range 50 {
		s := text(1, run, 40)
		lines := strings.Split(s, "\n")
		if len(lines) != 3 || len(strings.Fields(lines[1])) != 40 {
			t.Fatalf("text(%d, 40) = %q, want a line, 40 words and a last line", run, s)
		}
		firsts[lines[0]] = true
		if s != text(1, run, 40) {
			t.Fatalf("text(%d, 40) is another the second time", run)
		}
	}
	if len(firsts) != 50 {
		t.Errorf("%d first lines of 50 texts, want each its own", len(firsts))
	}
	one, two := strings.SplitN(text(1, 7, 40), "\n", 2), strings.SplitN(text(2, 7, 40), "\n", 2)
	if one[0] == two[0] || one[1] != two[1] {
		t.Errorf("texts of two seeds are %q and %q, want other first lines alone", one, two)
	}
}

// counts is a server that counts tokens in some way and says nothing.
type counts func(text string) int

func (c counts) Ask(_ context.Context, text string, tokens int) (Sample, error) {
	n := c(text)
	if n < 0 {
		return Sample{}, errors.New("it is gone")
	}
	return good(n, tokens), nil
}

func TestSizingOf(t *testing.T) {
	for _, tt := range []struct {
		name   string
		count  counts
		tokens int
		words  int
		err    string
	}{
		{"a token a word", func(s string) int { return len(strings.Fields(s)) + 9 }, 1000, 1000 - 9 - 28, ""},
		{"two tokens a word", func(s string) int { return 2 * len(strings.Fields(s)) }, 1000, 500 - 28, ""},
		{"too short for its head", func(s string) int { return len(strings.Fields(s)) + 100 }, 50, 1, ""},
		{"always the same", func(string) int { return 7 }, 0, 0, "are not the texts' tokens"},
		{"it fails", func(string) int { return -1 }, 0, 0, "it is gone"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			z, err := sizingOf(context.Background(), tt.count, 1)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Fatalf("sizingOf = %v, want an error with %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := z.words(tt.tokens); got != tt.words {
				t.Errorf("%d words for %d tokens, want %d", got, tt.tokens, tt.words)
			}
		})
	}
}

func TestSameWork(t *testing.T) {
	for _, tt := range []struct {
		name               string
		want, ours, theirs int
		note, refused      string
	}{
		{"the same", 1000, 1000, 1000, "", ""},
		{"a template's difference", 1000, 1004, 990, "", ""},
		{"another tokenizer", 1000, 1000, 1100, "the same work is the same text", ""},
		{"another tokenizer with fewer", 1000, 1000, 900, "the same work is the same text", ""},
		{"it was cut", 1000, 1000, 512, "", "1000 and 512 tokens"},
		{"a byte a token", 1000, 1000, 4300, "", "1000 and 4300 tokens"},
		{"ours is not what was asked for", 1000, 1060, 1060, "", "1060 tokens in a text made for 1000"},
		{"theirs says nothing", 1000, 1000, 0, "", "1000 and 0 tokens"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			note, refused := sameWork(tt.want, tt.ours, tt.theirs)
			if (note == "") != (tt.note == "") || !strings.Contains(note, tt.note) ||
				(refused == "") != (tt.refused == "") || !strings.Contains(refused, tt.refused) {
				t.Errorf("sameWork = %q, %q, want %q, %q", note, refused, tt.note, tt.refused)
			}
		})
	}
}
