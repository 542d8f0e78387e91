package dfa

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"testing"
	"unicode/utf8"
)

// pattern makes a random regular expression over a and b.
func pattern(rng *rand.Rand, depth int) string {
	if depth == 0 {
		return []string{"a", "b", ".", "[ab]", "[^a]", "^", "$", ""}[rng.IntN(8)]
	}
	x := func() string { return pattern(rng, depth-1) }
	switch rng.IntN(7) {
	case 0, 1, 2:
		return x() + x()
	case 3:
		return "(" + x() + "|" + x() + ")"
	case 4:
		return "(?:" + x() + ")" + []string{"*", "+", "?", "*?"}[rng.IntN(4)]
	case 5:
		return "(?:" + x() + ")" + []string{"{2}", "{0,2}", "{1,}", "{2,3}"}[rng.IntN(4)]
	}
	return x()
}

// TestPatternsLikeRegexp holds random patterns against package regexp on every
// short text.
func TestPatternsLikeRegexp(t *testing.T) {
	var texts []string
	var grow func(s string)
	grow = func(s string) {
		texts = append(texts, s)
		if len(s) < 6 {
			grow(s + "a")
			grow(s + "b")
		}
	}
	grow("")
	rng := rand.New(rand.NewPCG(5, 6))
	empty := 0
	for range 1500 {
		p := pattern(rng, 1+rng.IntN(5))
		want := regexp.MustCompile(p)
		c, err := maker().Pattern(p)
		if errors.Is(err, ErrEmpty) {
			empty++
			c = nil
		} else if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		for _, s := range texts {
			if got := c != nil && c.Has(s); got != want.MatchString(s) {
				t.Fatalf("%s on %q: %v, want %v", p, s, got, !got)
			}
		}
	}
	if empty > 300 {
		t.Errorf("%d patterns match nothing: the test sees too little", empty)
	}
}

func FuzzPattern(f *testing.F) {
	for _, p := range []string{`^[a-z]+$`, `(a|b)*c{2,3}`, `\d\D\s\S\w\W`, `[^\]\\]`, `\u{1F600}\x41`, `(?<n>a)\p{L}`, `^$|x`, `a{1000}`} {
		f.Add(p, "abc")
	}
	f.Fuzz(func(t *testing.T, p, text string) {
		c, err := NewMaker(1 << 18).Pattern(p)
		if err != nil || !utf8.ValidString(text) {
			return
		}
		if quoted := Quote(text); c.Has(text) != reads(c.JSON(), quoted[1:]) {
			t.Errorf("%q on %q: characters and JSON differ", p, text)
		}
	})
}
