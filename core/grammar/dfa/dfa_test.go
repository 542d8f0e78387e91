package dfa

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

func maker() *Maker { return NewMaker(1 << 22) }

// reads runs a text through the automaton over bytes.
func reads(b *Bytes, text string) bool {
	s := b.Start()
	for i := range len(text) {
		if s = b.Next(s, text[i]); s == 0 {
			return false
		}
	}
	return b.Accepts(s)
}

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern string
		in, out []string
	}{
		{`^abc$`, []string{"abc"}, []string{"", "ab", "abcd", "xabc"}},
		{`b`, []string{"b", "abc", "éb\n"}, []string{"", "ac"}},
		{`^a*$`, []string{"", "aaa"}, []string{"b", "aab"}},
		{`^$`, []string{""}, []string{"a"}},
		{`(^a|b$)`, []string{"ax", "xb", "a"}, []string{"xa", "bx", ""}},
		{`^(?:ab){2,3}$`, []string{"abab", "ababab"}, []string{"ab", "abababab"}},
		{`^(?<year>\d{4})-\d\d$`, []string{"2024-01"}, []string{"2024-1", "２０２４-01"}},
		{`^\S+\s\S+$`, []string{"a b", "a\u00a0b", "a\u2003b"}, []string{"ab", "a  b"}},
		{`^[\s\S]{2}$`, []string{"\n\n", "a\u2028"}, []string{"a"}},
		{`^.$`, []string{"a", "é", "😀"}, []string{"\n", "\u2028", "ab"}},
		{`^\u00e9\x41\u{1F600}$`, []string{"éA😀"}, []string{"eA😀"}},
		{`^[^a-c]$`, []string{"d", "😀"}, []string{"a", "b"}},
		{`^[[\]&&~-]+$`, []string{"[", "]", "&", "~-"}, []string{"a", ":"}},
		{`^\p{Lu}\P{Lu}$`, []string{"Éa"}, []string{"éa", "ÉA"}},
		{`^\/a\.b$`, []string{"/a.b"}, []string{"/axb"}},
		{`^a+?$`, []string{"a", "aa"}, []string{""}},
		{`a^b|c`, []string{"c"}, []string{"ab"}},
	} {
		t.Run(tt.pattern, func(t *testing.T) {
			c, err := maker().Pattern(tt.pattern)
			if err != nil {
				t.Fatal(err)
			}
			plain, json := c.Bytes(), c.JSON()
			for want, texts := range map[bool][]string{true: tt.in, false: tt.out} {
				for _, s := range texts {
					quoted := Quote(s)[1:]
					if a, b, d := c.Has(s), reads(plain, s), reads(json, quoted); a != want || b != want || d != want {
						t.Errorf("%q: %v as characters, %v as bytes, %v as JSON; want %v", s, a, b, d, want)
					}
				}
			}
		})
	}
}

func TestPatternRefused(t *testing.T) {
	for _, pattern := range []string{`(?=a)`, `(?<!a)b`, `(a)\1`, `\bword`, `a{`, `x}`, `[]`, `(?i)a`, `\ud83d`, `(`, `\`, `\cA`, `[b-a]`, `\u12`} {
		if _, err := maker().Pattern(pattern); err == nil {
			t.Errorf("%s: taken, want an error", pattern)
		}
	}
	if _, err := maker().Pattern(`a^b`); !errors.Is(err, ErrEmpty) {
		t.Errorf("a pattern that matches nothing: %v, want ErrEmpty", err)
	}
	for _, pattern := range []string{`^(a|b)*a(a|b){20}$`, strings.Repeat(`(x+)*`, 500) + `y[^z]{900}`} {
		if _, err := maker().Pattern(pattern); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%.40s: %v, want ErrTooLarge", pattern, err)
		}
	}
}

// Every character is spelt so that exactly it comes back.
func TestSpelling(t *testing.T) {
	any := AnyJSON()
	plain, shortest := Anything().Bytes(), Anything().JSON()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if r == 0xd800 {
			r = 0xe000
		}
		if r > 0x3000 && r%97 != 0 && r < 0xffff { // and every 97th of the rest
			continue
		}
		s := string(r)
		if !reads(plain, s) || !reads(shortest, Quote(s)[1:]) || !reads(any, Quote(s)[1:]) {
			t.Fatalf("%U is not read", r)
		}
	}
	for _, s := range []string{`\u00e9`, `\uD83D\ude00`, `\/`, `\u0000`, `\ud7ff\uE000`, `\"\\`} {
		if !reads(any, s+`"`) {
			t.Errorf("%s is not read", s)
		}
		if reads(shortest, s+`"`) && s != `\u0000` && s != `\"\\` {
			t.Errorf("%s is read as a shortest spelling", s)
		}
	}
	for _, s := range []string{"\xff", "\xc0\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\n", "\x00", `\x`, `\ud83d`, `\ude00`, `\ud83d\u0041`, `\u12g4`, "\xe9"} {
		if reads(any, s+`"`) {
			t.Errorf("%q is read", s)
		}
	}
}

func TestNumbers(t *testing.T) {
	bound := func(s string) *Bound {
		if s == "" {
			return nil
		}
		return &Bound{Digits: strings.TrimPrefix(s, "x"), Excluded: s[0] == 'x'}
	}
	inside := func(x float64, low, high string) bool {
		value := func(s string) float64 { f, _ := strconv.ParseFloat(strings.TrimPrefix(s, "x"), 64); return f }
		if low != "" && (x < value(low) || x == value(low) && low[0] == 'x') {
			return false
		}
		return high == "" || x < value(high) || x == value(high) && high[0] != 'x'
	}
	for _, b := range [][2]string{
		{"", ""}, {"0", "100"}, {"1", "1"}, {"-5", "5"}, {"-120", "-7"}, {"x0", ""}, {"", "x0"}, {"0.5", "2.25"}, {"x0.5", "x2.25"},
		{"-1.5", "-0.5"}, {"7", ""}, {"", "-7"}, {"99", "101"}, {"x99", "x101"}, {"-0", "0"}, {"1.10", "20"}, {"x-1", "x1"},
	} {
		low, high := b[0], b[1]
		t.Run(low+".."+high, func(t *testing.T) {
			integers, err := maker().Integers(bound(low), bound(high))
			if err != nil {
				t.Fatal(err)
			}
			decimals, err := maker().Numbers(bound(low), bound(high))
			if err != nil {
				t.Fatal(err)
			}
			for i := -13000; i <= 13000; i++ {
				whole := strconv.Itoa(i)
				if got, want := integers.Has(whole), inside(float64(i), low, high); got != want {
					t.Fatalf("%s: integer %v, want %v", whole, got, want)
				}
				hundredths := fmt.Sprintf("%.2f", float64(i)/100)
				x, _ := strconv.ParseFloat(hundredths, 64)
				if got, want := decimals.Has(hundredths), inside(x, low, high); got != want {
					t.Fatalf("%s: decimal %v, want %v", hundredths, got, want)
				}
			}
			for _, s := range []string{"", "-", "01", "-01", "1.", ".5", "+1", "1e2"} {
				if integers.Has(s) || decimals.Has(s) {
					t.Errorf("%q is taken", s)
				}
			}
			if integers.Has("-0") && !inside(0, low, high) || decimals.Has("-0.0") && !inside(0, low, high) {
				t.Errorf("-0 is taken")
			}
		})
	}
	for _, b := range [][2]string{{"2", "1"}, {"0.2", "0.8"}, {"x1", "x2"}, {"x5", "5"}} {
		if _, err := maker().Integers(bound(b[0]), bound(b[1])); !errors.Is(err, ErrEmpty) {
			t.Errorf("integers %s..%s: %v, want ErrEmpty", b[0], b[1], err)
		}
	}
}

func TestAnyNumber(t *testing.T) {
	n := AnyNumber()
	for want, texts := range map[bool][]string{
		true:  {"0", "-0", "12", "1.5", "-1e9", "1E+10", "0.001", "1.5e-3", "123456789012345678"},
		false: {"", "-", "01", "1.", ".1", "1e", "1e+", "0x1", "1e100", "1234567890123456789", "NaN"},
	} {
		for _, s := range texts {
			if n.Has(s) != want {
				t.Errorf("%q: %v, want %v", s, !want, want)
			}
		}
	}
}

const endMark = "\n</p>"

func TestUntil(t *testing.T) {
	until := func(c *Chars, err error) *Bytes {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		u, err := maker().Until(c, endMark, "</p>", "\n<p=")
		if err != nil {
			t.Fatal(err)
		}
		return u.Bytes()
	}
	free := until(Anything(), nil)
	some := until(maker().Choice("ab", "a\n", "", "x</p"))
	for _, tt := range []struct {
		text       string
		free, some bool
	}{
		{"", true, true}, {"ab", true, true}, {"a", true, false}, {"a\n", true, true}, {"x</p", true, true},
		{"one\ntwo\n\n", true, false}, {"a<p=b", true, false}, {"a\n<p=b", false, false}, {"a</p>b", false, false},
		{"\n</p", true, false}, {"\n<\n</", true, false}, {"é\n<é", true, false},
	} {
		if got := reads(free, tt.text+endMark); got != tt.free {
			t.Errorf("%q among all texts: %v, want %v", tt.text, got, tt.free)
		}
		if got := reads(some, tt.text+endMark); got != tt.some {
			t.Errorf("%q among some: %v, want %v", tt.text, got, tt.some)
		}
		if reads(free, tt.text) && !strings.HasSuffix(tt.text, endMark) {
			t.Errorf("%q ends without its mark", tt.text)
		}
	}
}

func TestSets(t *testing.T) {
	has := func(c *Chars, err error) func(string) bool {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c.Has
	}
	length := has(maker().Length(2, 3))
	atLeast := has(maker().Length(2, -1))
	except := has(maker().Except("a", "ab", "é"))
	pattern, _ := maker().Pattern(`^(ab)*$`)
	two, _ := maker().Length(3, 4)
	both := has(maker().Intersect(pattern, two))
	without := has(maker().Without(Anything(), "<b>"))
	for _, tt := range []struct {
		what string
		has  func(string) bool
		text string
		want bool
	}{
		{"length", length, "é", false}, {"length", length, "éé", true}, {"length", length, "😀😀😀", true}, {"length", length, "aaaa", false},
		{"at least", atLeast, "a", false}, {"at least", atLeast, "aaaaaa", true},
		{"except", except, "a", false}, {"except", except, "ab", false}, {"except", except, "abc", true}, {"except", except, "", true}, {"except", except, "é", false},
		{"both", both, "ab", false}, {"both", both, "abab", true}, {"both", both, "aba", false},
		{"without", without, "a<b", true}, {"without", without, "a<b>", false}, {"without", without, "<<b>", false},
	} {
		if got := tt.has(tt.text); got != tt.want {
			t.Errorf("%s: %q %v, want %v", tt.what, tt.text, got, tt.want)
		}
	}
	odd, _ := maker().Length(3, 3)
	if _, err := maker().Intersect(pattern, odd); !errors.Is(err, ErrEmpty) {
		t.Errorf("nothing in common: %v, want ErrEmpty", err)
	}
}
