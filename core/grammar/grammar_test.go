package grammar

import (
	"errors"
	"strings"
	"testing"

	"calla/core/grammar/dfa"
)

const (
	tokenEnd = 256 + iota
	tokenControl
	tokenOther
	tokenWords
)

// vocabulary has every byte, a token that ends, two control tokens and words.
func vocabulary(t testing.TB, words ...string) *Vocabulary {
	t.Helper()
	v, err := NewVocabulary(Tokens{
		Count: tokenWords + len(words),
		Bytes: func(id int32) []byte {
			switch {
			case id < 256:
				return []byte{byte(id)}
			case id < tokenWords:
				return []byte("<control>")
			}
			return []byte(words[id-tokenWords])
		},
		Controls: []int32{tokenControl},
		Apart:    func(id int32) bool { return id >= tokenEnd && id < tokenWords },
		Ends:     []int32{tokenEnd},
	})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *Vocabulary) spelled(m Mask) []string {
	var all []string
	for t := range int32(v.Size()) {
		if m.Has(t) {
			all = append(all, string(v.bytes(t)))
		}
	}
	return all
}

func allowed(t *testing.T, m *Matcher) string {
	t.Helper()
	mask := NewMask(m.automaton.vocabulary.Size())
	if err := m.Allowed(mask); err != nil {
		t.Fatal(err)
	}
	return strings.Join(m.automaton.vocabulary.spelled(mask), " ")
}

func TestAllowed(t *testing.T) {
	v := vocabulary(t, "ab", "abc", "b1", "1", "12", "c<", "<", "abd", "12c")
	set, err := dfa.NewMaker(1000).Pattern(`^[1-3]{1,3}$`)
	if err != nil {
		t.Fatal(err)
	}
	b := NewBuilder()
	end := b.Control(0, Return)
	digits := b.Lexeme(NewLexeme(set.Bytes()), b.Literal("c", end))
	g, err := b.Grammar(b.Choice(b.Literal("ab", digits), b.Literal("a", b.Literal("bd", Return))))
	if err != nil {
		t.Fatal(err)
	}
	a, err := v.Bind(g)
	if err != nil {
		t.Fatal(err)
	}
	m := a.Matcher()
	for _, step := range []struct {
		want  string // what may come
		token int32
	}{
		{"a ab abd", 'a'},
		{"b b1", 'b'},
		{"1 2 3 d 1 12 12c", tokenWords + 4}, // 12
		{"1 2 3 c 1", '3'},
		{"c", 'c'},
		{"<control>", tokenControl},
		{"<control>", tokenEnd},
	} {
		if got := allowed(t, m); got != step.want {
			t.Fatalf("allowed %q, want %q", got, step.want)
		}
		if step.token == tokenEnd {
			break
		}
		before := *m
		for _, wrong := range []int32{'x', tokenOther} {
			if m.Next(wrong) == nil || *m != before {
				t.Errorf("token %d was taken, or left its mark", wrong)
			}
		}
		if err := m.Next(step.token); err != nil {
			t.Fatal(err)
		}
	}
	if !m.Complete() || !m.Over() {
		t.Errorf("the text is not complete")
	}
}

// Calls within each other are cut where what is open can still be closed.
func TestDepth(t *testing.T) {
	b := NewBuilder()
	r := b.NewRule()
	b.Define(r, b.Literal("(", b.Choice(b.Literal(")", Return), b.Call(r, b.Literal(")", Return)))))
	g, err := b.Grammar(b.Call(r, Return))
	if err != nil {
		t.Fatal(err)
	}
	a, err := vocabulary(t, "((", "()").Bind(g)
	if err != nil {
		t.Fatal(err)
	}
	m := a.Matcher()
	depth := 0
	for m.Next('(') == nil {
		depth++
	}
	if depth != MaxDepth {
		t.Errorf("%d calls within each other, want %d", depth, MaxDepth)
	}
	if got := allowed(t, m); got != ")" {
		t.Errorf("allowed %q at the greatest depth, want )", got)
	}
	for range depth {
		if err := m.Next(')'); err != nil {
			t.Fatal(err)
		}
	}
	if !m.Over() {
		t.Errorf("the text is not over")
	}
}

// A way that needs more calls than are left is no way.
func TestDepthOfWhatIsToCome(t *testing.T) {
	b := NewBuilder()
	inner := b.NewRule()
	b.Define(inner, b.Literal("i", Return))
	middle := b.NewRule()
	b.Define(middle, b.Literal("m", b.Call(inner, Return)))
	r := b.NewRule()
	b.Define(r, b.Literal("(", b.Choice(b.Literal(")", Return), b.Call(r, b.Literal(")", Return)), b.Literal("m", b.Call(middle, b.Literal(")", Return))))))
	g, err := b.Grammar(b.Call(r, Return))
	if err != nil {
		t.Fatal(err)
	}
	a, err := vocabulary(t).Bind(g)
	if err != nil {
		t.Fatal(err)
	}
	m := a.Matcher()
	for depth := 1; depth <= MaxDepth; depth++ {
		if err := m.Next('('); err != nil {
			t.Fatal(err)
		}
		want := "( ) m"
		switch {
		case depth == MaxDepth:
			want = ")"
		case depth > MaxDepth-2:
			want = "( )"
		}
		if got := allowed(t, m); got != want {
			t.Errorf("allowed %q at depth %d, want %q", got, depth, want)
		}
	}
}

func TestGrammarsThatCannotBeHad(t *testing.T) {
	b := NewBuilder()
	r := b.NewRule()
	b.Define(r, b.Literal("(", b.Call(r, b.Literal(")", Return))))
	if _, err := b.Grammar(b.Call(r, Return)); !errors.Is(err, ErrEndless) {
		t.Errorf("a rule that always calls itself: %v, want ErrEndless", err)
	}
	if _, err := b.Grammar(b.Choice()); !errors.Is(err, ErrEndless) {
		t.Errorf("a choice of nothing: %v, want ErrEndless", err)
	}
	for b.Size() < maxInstructions {
		b.Choice(Return, Return)
	}
	b.Choice(Return, Return)
	b.Choice(Return, Return)
	if _, err := b.Grammar(Return); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a grammar without bounds: %v, want ErrTooLarge", err)
	}
}

// A text that can be read in ever more ways ends with an error, not with a mask
// that rules something out.
func TestAmbiguous(t *testing.T) {
	b := NewBuilder()
	r, q := b.NewRule(), b.NewRule()
	both := b.Choice(b.Call(r, Return), b.Call(q, Return), Return)
	b.Define(r, b.Literal("a", both))
	b.Define(q, b.Literal("a", b.Choice(b.Call(r, b.Literal("b", Return)), b.Call(q, b.Literal("c", Return)), Return)))
	g, err := b.Grammar(both)
	if err != nil {
		t.Fatal(err)
	}
	a, err := vocabulary(t).Bind(g)
	if err != nil {
		t.Fatal(err)
	}
	m := a.Matcher()
	for range MaxDepth {
		if err = m.Next('a'); err != nil {
			break
		}
	}
	if !errors.Is(err, ErrAmbiguous) {
		t.Errorf("error %v, want ErrAmbiguous", err)
	}
}

// What is kept is bounded, and nobody sees it being dropped.
func TestForgetting(t *testing.T) {
	b := NewBuilder()
	loop := b.Open()
	set, _ := dfa.NewMaker(1000).Pattern(`^[ab]{2}$`)
	b.Close(loop, b.Lexeme(NewLexeme(set.Bytes()), b.Literal(",", loop)), Return)
	g, err := b.Grammar(loop)
	if err != nil {
		t.Fatal(err)
	}
	a, err := vocabulary(t, "ab", "b,").Bind(g)
	if err != nil {
		t.Fatal(err)
	}
	m, want := a.Matcher(), []string{"a b <control> ab", "a b b,", ","}
	for i := range 300 {
		if i%7 == 0 {
			a.forget()
		}
		if got := allowed(t, m); got != want[i%3] {
			t.Fatalf("step %d: allowed %q, want %q", i, got, want[i%3])
		}
		if err := m.Next([]int32{'a', 'b', ','}[i%3]); err != nil {
			t.Fatal(err)
		}
	}
}

func TestVocabularyWithoutEachByte(t *testing.T) {
	_, err := NewVocabulary(Tokens{Count: 255, Bytes: func(id int32) []byte { return []byte{byte(id)} }, Apart: func(int32) bool { return false }})
	if err == nil || !strings.Contains(err.Error(), "no token for byte 0xff") {
		t.Errorf("error %v, want one that names the byte", err)
	}
}
