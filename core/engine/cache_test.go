package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/backend/backendtest"
)

// cold generates on an engine that has seen nothing.
func cold(t *testing.T, r Request) outcome {
	t.Helper()
	d := &backendtest.Device{Vocab: vocab}
	e, err := New(loader(d), testOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close(context.Background())
	return generate(t, e, r)
}

// sameAsCold asks a warm engine and a cold one, and wants the same tokens with
// the same log-probabilities. The scripted device's logits tell any two states
// apart.
func sameAsCold(t *testing.T, e *Engine, r Request) outcome {
	t.Helper()
	r.MaxTokens, r.LogProbs = 3, 1
	got, want := generate(t, e, r), cold(t, r)
	if !slices.Equal(got.tokens, want.tokens) {
		t.Fatalf("tokens %v after a hit of %d, want %v as cold", got.tokens, got.CachedTokens, want.tokens)
	}
	for i := range got.logProbs {
		if got.logProbs[i].LogProb != want.logProbs[i].LogProb {
			t.Fatalf("log-probability %d differs after a hit of %d", i, got.CachedTokens)
		}
	}
	return got
}

func TestChatHitsAfterTheFirstTurn(t *testing.T) {
	e := start(t, &backendtest.Device{}, testOptions())
	history := turn(0, 40) // system
	system := len(history)
	for i := range 12 {
		history = join(history, turn(10+i, 30))
		userEnd := len(history)
		o := sameAsCold(t, e, Request{Prompt: join(history, open), Keep: []int{system, userEnd}})
		want := 0
		if i > 0 {
			want = userEnd - len(turn(10+i, 30)) - len(turn(0, 20))
		}
		if o.CachedTokens != want {
			t.Errorf("turn %d reused %d tokens, want %d", i, o.CachedTokens, want)
		}
		if o.Miss != nil {
			t.Errorf("turn %d reports a miss: %+v", i, *o.Miss)
		}
		// The template drops the think block of a reply once it is history.
		history = join(history, turn(100+i, 20))
	}
}

func TestAnticipatedReplyHitsBehindIt(t *testing.T) {
	e := start(t, &backendtest.Device{}, testOptions())
	first := join(turn(0, 40), turn(1, 30))
	generate(t, e, Request{Prompt: join(first, open), MaxTokens: 3})
	next := join(first, turn(2, 20))
	e.Anticipate("", func() ([]int32, []int) { return next, []int{len(turn(0, 40)), len(first)} })
	waitIdle(t, e, len(next))
	o := sameAsCold(t, e, Request{Prompt: join(next, turn(3, 10), open)})
	if o.CachedTokens != len(next) {
		t.Errorf("reused %d tokens, want %d: all up to the new message", o.CachedTokens, len(next))
	}
}

// waitIdle returns when the cache holds a sequence of n tokens.
func waitIdle(t *testing.T, e *Engine, n int) {
	t.Helper()
	for range 1000 {
		found := false
		err := e.exclusive(context.Background(), func(_ context.Context, w *worker) error {
			for _, c := range w.cache.lru.Keys() {
				found = found || len(c.tokens) == n && c.snaps[len(c.snaps)-1].Len() == n
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if found {
			return
		}
	}
	t.Fatal("the reply was never prefilled")
}

func TestToolLoopHitsAtTheUserMessage(t *testing.T) {
	e := start(t, &backendtest.Device{}, testOptions())
	system, user := turn(0, 200), turn(1, 30)
	head := join(system, user)
	think := []int32{imStart, words + 2, newline, 5, newline, newline, 6, newline, newline}
	loop := head
	for i := range 12 {
		sameAsCold(t, e, Request{Prompt: join(loop, open), Keep: []int{len(system), len(head)}, CacheKey: "talk"})
		call := join(think, turn(200+i, 25)[3:])
		loop = join(loop, call, turn(300+i, 40))
	}
	// A new user message: every earlier reply loses its think block.
	next := head
	for i := range 12 {
		next = join(next, open[:3], turn(200+i, 25)[3:], turn(300+i, 40))
	}
	next = join(next, turn(400, 20), turn(401, 20))
	o := sameAsCold(t, e, Request{Prompt: join(next, open), Keep: []int{len(system), len(next)}, CacheKey: "talk"})
	if o.CachedTokens != len(head) {
		t.Errorf("reused %d tokens, want %d: up to the first user message", o.CachedTokens, len(head))
	}
	if o.Miss == nil || o.Miss.Position != len(head)+3 || o.Miss.Reason != MissChanged {
		t.Errorf("miss is %+v, want changed at %d, where the think block was", o.Miss, len(head)+3)
	}
}

func TestPromptsAroundAStoredSequence(t *testing.T) {
	system, user := turn(0, 100), turn(1, 300)
	stored := join(system, user, open)
	for _, tt := range []struct {
		name   string
		prompt []int32
		want   int
	}{
		{"the same", stored, len(system) + len(user)},
		{"one shorter", stored[:len(stored)-1], len(system) + len(user)},
		{"one longer", join(stored, []int32{77}), len(system) + len(user)},
		{"up to the last snapshot", stored[:len(system)+len(user)], len(system)},
		{"one behind the last snapshot", stored[:len(system)+len(user)+1], len(system) + len(user)},
		{"inside the first segment", stored[:50], 0},
		{"another first token", join([]int32{99}, stored[1:]), 0},
		{"last message edited", join(system, user[:200], []int32{66, imEnd, newline}, open), len(system)},
		{"newline after a turn missing", join(system[:len(system)-1], user), 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := start(t, &backendtest.Device{}, testOptions())
			generate(t, e, Request{Prompt: stored, MaxTokens: 2, Keep: []int{len(system)}})
			o := sameAsCold(t, e, Request{Prompt: tt.prompt})
			if o.CachedTokens != tt.want {
				t.Errorf("reused %d tokens, want %d", o.CachedTokens, tt.want)
			}
		})
	}
}

func TestCommonPrefix(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 9))
	for range 2000 {
		a := make([]int32, rng.IntN(300))
		for i := range a {
			a[i] = rng.Int32()
		}
		want := rng.IntN(len(a) + 1)
		b := slices.Clone(a[:want])
		if want < len(a) {
			b = append(b, a[want]^1)
			b = append(b, a[want+1:]...)
		}
		if got := commonPrefix(a, b); got != want {
			t.Fatalf("commonPrefix of %d and %d tokens = %d, want %d", len(a), len(b), got, want)
		}
		if got := commonPrefix(b[:want], a); got != want {
			t.Fatalf("commonPrefix of %d and %d tokens = %d, want all", want, len(a), got)
		}
	}
}

// A snapshot that was taken behind an end of turn is of no use to a prompt in
// which a newline follows that: it is part of the turn there, and the grids
// differ.
func TestNewlineThatOnlyThePromptHas(t *testing.T) {
	e := start(t, &backendtest.Device{}, testOptions())
	system, user := turn(0, 100), turn(1, 300)
	bare := system[:len(system)-1]
	generate(t, e, Request{Prompt: join(bare, user, open), MaxTokens: 2, Keep: []int{len(bare)}})
	if o := sameAsCold(t, e, Request{Prompt: join(bare, user, open)}); o.CachedTokens != len(bare)+len(user) {
		t.Fatalf("the same again reused %d tokens", o.CachedTokens)
	}
	generate(t, e, Request{Prompt: join(bare, turn(2, 9), open), MaxTokens: 2, Keep: []int{len(bare)}})
	if o := sameAsCold(t, e, Request{Prompt: join(system, user, open)}); o.CachedTokens != 0 {
		t.Errorf("with the newline it reused %d tokens, want none", o.CachedTokens)
	}
}

func TestSideRequestDoesNotThrowOutALongConversation(t *testing.T) {
	e := start(t, &backendtest.Device{}, testOptions())
	long := turn(0, 30000)
	sameAsCold(t, e, Request{Prompt: join(long, turn(1, 20), open)})
	for i := range 10 {
		side := sameAsCold(t, e, Request{Prompt: join(turn(500+i, 60), turn(600+i, 30), open)})
		if side.CachedTokens != 0 {
			t.Fatalf("side request reused %d tokens of another conversation", side.CachedTokens)
		}
	}
	o := sameAsCold(t, e, Request{Prompt: join(long, turn(1, 20), turn(2, 20), turn(3, 20), open)})
	if want := len(long) + len(turn(1, 20)); o.CachedTokens != want {
		t.Errorf("after side requests the conversation reused %d tokens, want %d", o.CachedTokens, want)
	}
}

// With two long conversations in a full cache, one that goes back a little
// gives up its own tail: a branch would cost the other one.
func TestLongConversationsShareAFullCache(t *testing.T) {
	e := start(t, &backendtest.Device{}, testOptions())
	a, b := join(turn(0, 9000), turn(1, 900)), turn(2, 9000)
	generate(t, e, Request{Prompt: join(a, turn(3, 900), open), MaxTokens: 2, Keep: []int{len(a)}})
	generate(t, e, Request{Prompt: join(b, open), MaxTokens: 2})
	if o := sameAsCold(t, e, Request{Prompt: join(a, turn(4, 20), open)}); o.CachedTokens != len(a) {
		t.Errorf("the one that went back reused %d tokens, want %d", o.CachedTokens, len(a))
	}
	if o := sameAsCold(t, e, Request{Prompt: join(b, turn(5, 20), open)}); o.CachedTokens != len(b) {
		t.Errorf("the other one reused %d tokens, want %d", o.CachedTokens, len(b))
	}
}

func TestCancelledPrefillIsContinued(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	d := &backendtest.Device{}
	d.Step = func(backend.Call) error {
		if d.Counts().PrefillRows >= 1500 {
			cancel()
		}
		return nil
	}
	e := start(t, d, testOptions())
	prompt := join(turn(0, 4000), open)
	g, err := e.Submit(ctx, Request{Prompt: prompt, LogProbs: NoLogProbs})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect(g); !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled generation ended with %v", err)
	}
	o := sameAsCold(t, e, Request{Prompt: prompt})
	if o.CachedTokens != 2048 {
		t.Errorf("the retry reused %d tokens, want the 2048 that were evaluated", o.CachedTokens)
	}
}

func TestMissIsExplained(t *testing.T) {
	o := testOptions()
	o.CacheEntries = 1
	e := start(t, &backendtest.Device{}, o)
	system := turn(0, 100)
	generate(t, e, Request{Prompt: join(system, turn(1, 40), open), MaxTokens: 1})
	dated := slices.Clone(system)
	dated[50]++ // a date that changes with each request
	got := generate(t, e, Request{Prompt: join(dated, turn(1, 40), open), MaxTokens: 1})
	if got.CachedTokens != 0 || got.Miss == nil || *got.Miss != (CacheMiss{MissChanged, 50}) {
		t.Errorf("changed system block: reused %d, miss %+v; want changed at 50", got.CachedTokens, got.Miss)
	}
	got = generate(t, e, Request{Prompt: join(system, turn(1, 40), open), MaxTokens: 1})
	if got.Miss == nil {
		t.Errorf("a sequence that made room: no miss reported")
	}
	got = generate(t, e, Request{Prompt: join(turn(7, 100), open), MaxTokens: 1})
	if got.Miss != nil {
		t.Errorf("a new conversation reports the miss %+v, want none", *got.Miss)
	}
}

// A random walk over conversations that branch, are edited, cut and mixed: each
// answer is what a cold engine gives.
func TestRandomConversationsAreExact(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			o := testOptions()
			o.PrefillChunk = backend.SubChunk * (1 + int(seed)*3)
			e := start(t, &backendtest.Device{}, o)
			rng := rand.New(rand.NewPCG(seed, 0))
			talks := [][]int32{turn(0, 90), turn(1, 300), turn(2, 5)}
			for range 60 {
				i := rng.IntN(len(talks))
				talk := talks[i]
				switch rng.IntN(4) {
				case 0:
					talk = talk[:rng.IntN(len(talk))+1]
				case 1:
					talk = slices.Clone(talk)
					talk[rng.IntN(len(talk))] = words
				}
				talk = join(talk, turn(rng.IntN(1000), rng.IntN(200)))
				sameAsCold(t, e, Request{Prompt: join(talk, open), Keep: []int{rng.IntN(len(talk)), len(talk)}})
				talks[rng.IntN(len(talks))] = join(talk, turn(rng.IntN(1000), rng.IntN(60)))
				if len(talks[i]) > 4000 {
					talks[i] = turn(rng.IntN(9), 90)
				}
			}
		})
	}
}
