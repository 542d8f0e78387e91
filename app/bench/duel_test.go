package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// duellist is one of two scripted servers. It counts words and some more.
type duellist struct {
	name   string
	order  *[]string // who was asked for texts that count
	texts  map[string]int
	asked  int
	change func(asked int, s *Sample) error
}

func (d *duellist) Ask(_ context.Context, text string, tokens int) (Sample, error) {
	s := good(len(strings.Fields(text))+4, tokens)
	d.texts[text]++
	var err error
	if d.change != nil {
		err = d.change(d.asked, &s)
	}
	d.asked++
	*d.order = append(*d.order, d.name)
	return s, err
}

func newDuel(change func(asked int, s *Sample) error) (*Duel, *[]string, map[string]int) {
	var order []string
	texts := map[string]int{}
	return &Duel{
		Ours: &duellist{name: "A", order: &order, texts: texts}, Theirs: &duellist{name: "B", order: &order, texts: texts, change: change},
		OurWatch: &Watch{}, TheirWatch: &Watch{},
	}, &order, texts
}

func TestDuelGoesByTurns(t *testing.T) {
	d, order, texts := newDuel(func(_ int, s *Sample) error {
		s.FirstToken, s.Prefill, s.Decode = 2*s.FirstToken, 2*s.Prefill, 3*s.Decode
		return nil
	})
	pairs, err := d.Run(context.Background(), onePoint)
	if err != nil {
		t.Fatal(err)
	}
	// Two sizings of ours, a warm-up of both, five rounds.
	if got, want := strings.Join(*order, ""), "AA"+"AB"+"ABBAABBAAB"; got != want {
		t.Errorf("asked %s, want %s", got, want)
	}
	for text, times := range texts {
		if times > 2 {
			t.Errorf("a text was sent %d times: %.30q", times, text)
		}
	}
	x := pairs[0]
	if x.Refused != "" || x.Note != "" || x.Ours.Counted != 100 || len(x.Theirs.Runs) != 5 {
		t.Fatalf("pair %+v", x)
	}
	for _, r := range []struct {
		name string
		got  *Summary
		want float64
	}{{"first token", x.FirstToken, 2}, {"prefill", x.Prefill, 2}, {"decode", x.Decode, 3}} {
		if r.got == nil || r.got.Median < r.want*0.999 || r.got.Median > r.want*1.001 {
			t.Errorf("%s ratio %v, want %v", r.name, r.got, r.want)
		}
	}
}

func TestDuelRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		change  func(asked int, s *Sample) error
		rounds  int
		refused string
		note    string
	}{
		{"a peer that caches", func(_ int, s *Sample) error { s.Cached = 90; return nil }, 0, "0 of 5 runs count; tokens of the prompt came from a cache", ""},
		{"a peer that caches its template's head", func(_ int, s *Sample) error { s.Cached = headTokens; return nil }, 5, "", ""},
		{"a peer that cuts the text and says so", func(_ int, s *Sample) error { s.Prompt = 64; return nil }, 5, "one cut it", ""},
		{"a peer that lies", func(_ int, s *Sample) error { s.Prompt *= 10; return nil }, 5, "count 100 and 1000 tokens", ""},
		{"another tokenizer", func(_ int, s *Sample) error { s.Prompt += 10; return nil }, 5, "", "100 tokens to us and 110 to the other"},
		{"a peer that ends early", func(_ int, s *Sample) error { s.Generated = 3; return nil }, 0, "ended before 8 tokens", ""},
		{"a peer that does not stream", func(_ int, s *Sample) error { s.Decode = 0; return nil }, 0, "must stream", ""},
		{"a peer that fails at once", func(int, *Sample) error { return errors.New("no answer") }, 0, "the warm-up failed: no answer", ""},
		{"a peer that fails in the middle", func(asked int, _ *Sample) error {
			if asked > 3 {
				return errors.New("it is gone")
			}
			return nil
		}, 3, "3 of 5 runs count; it is gone", ""},
		{"a peer that fails once", func(asked int, _ *Sample) error {
			if asked == 3 {
				return errors.New("it is gone")
			}
			return nil
		}, 5, "", ""},
		{"a slow peer", func(_ int, s *Sample) error { s.FirstToken = time.Hour; return nil }, 5, "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, _, _ := newDuel(tt.change)
			pairs, err := d.Run(context.Background(), onePoint)
			if err != nil {
				t.Fatal(err)
			}
			x := pairs[0]
			if len(x.Ours.Runs) != tt.rounds || len(x.Theirs.Runs) != tt.rounds {
				t.Errorf("%d and %d rounds, want %d", len(x.Ours.Runs), len(x.Theirs.Runs), tt.rounds)
			}
			if (x.Refused == "") != (tt.refused == "") || !strings.Contains(x.Refused, tt.refused) || !strings.Contains(x.Note, tt.note) {
				t.Errorf("refused %q and note %q, want %q and %q", x.Refused, x.Note, tt.refused, tt.note)
			}
			if (x.Prefill == nil) != (x.Refused != "") {
				t.Errorf("a ratio of %v where refused is %q", x.Prefill, x.Refused)
			}
		})
	}
}

// Where a length is no context, answers may be as short as they like.
func TestDuelOfPromptsAlone(t *testing.T) {
	d, _, _ := newDuel(func(_ int, s *Sample) error { s.Generated, s.Decode = 1, 0; return nil })
	pairs, err := d.Run(context.Background(), Plan{Prompts: []int{100}, Tokens: 11, Runs: 5})
	if err != nil {
		t.Fatal(err)
	}
	if x := pairs[0]; x.Refused != "" || x.Prefill == nil || x.Decode != nil {
		t.Errorf("pair %+v, want prefill alone", x)
	}
}

// Where tokenizers differ, prefill is the same text's time for both.
func TestDuelCountsTextWhereTokenizersDiffer(t *testing.T) {
	d, _, _ := newDuel(func(_ int, s *Sample) error { s.Prompt = 110; return nil }) // in the time of 100
	pairs, err := d.Run(context.Background(), onePoint)
	if err != nil {
		t.Fatal(err)
	}
	if x := pairs[0]; x.Prefill.Median != 1 || x.Theirs.Prefill.Median < 1099 {
		t.Errorf("ratio %v of rates %v and %v, want 1", x.Prefill, x.Ours.Prefill, x.Theirs.Prefill)
	}
}

func TestDuelInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	d, _, _ := newDuel(func(asked int, _ *Sample) error {
		if asked == 3 {
			cancel()
			return ctx.Err()
		}
		return nil
	})
	pairs, err := d.Run(ctx, Plan{Prompts: []int{100, 200}, Contexts: []int{100}, Tokens: 11, Runs: 5})
	if err != nil {
		t.Fatal(err)
	}
	c := Comparison{Pairs: pairs}
	c.Conclude()
	want := "100 tokens: 2 of 5 rounds, it was stopped; 200 tokens: 0 of 5 rounds, it was stopped"
	if got := strings.Join(c.Missing, "; "); got != want {
		t.Errorf("missing %q, want %q", got, want)
	}
}

// An empty answer ended early: it does not count, and ends nothing.
func TestDuelOfEmptyAnswers(t *testing.T) {
	empty := func(asked int, s *Sample) error {
		if asked%3 == 0 {
			return fmt.Errorf("bench: %w", errEmpty)
		}
		return nil
	}
	d, _, _ := newDuel(empty)
	d.Ours.(*duellist).change = empty
	pairs, err := d.Run(context.Background(), onePoint)
	if err != nil {
		t.Fatal(err)
	}
	if x := pairs[0]; x.Refused != "" || len(x.Ours.Runs) != 5 || len(x.Ours.Rejected) == 0 {
		t.Errorf("pair %+v, want 5 rounds and the empty answers rejected", x)
	}
}

// A server that stood still is asked nothing more.
func TestDuelOfASilentPeer(t *testing.T) {
	asked := 0
	d, _, _ := newDuel(func(int, *Sample) error {
		asked++
		return fmt.Errorf("bench: %w", errSilent)
	})
	pairs, err := d.Run(context.Background(), Plan{Prompts: []int{100, 200}, Tokens: 11, Runs: 5})
	if err != nil {
		t.Fatal(err)
	}
	if asked != 1 || !strings.Contains(pairs[0].Refused, "warm-up failed") || !strings.Contains(pairs[1].Refused, "not tried") {
		t.Errorf("asked %d times; refused %q and %q", asked, pairs[0].Refused, pairs[1].Refused)
	}
}
