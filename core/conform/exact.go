package conform

import (
	"fmt"
	"slices"
	"testing"

	"calla/core/model"
)

// exactPrompts are prompts that lie on the grid in different ways.
func exactPrompts(vocab int) map[string]prompt {
	r := newSource(vocab)
	tokens := make([]int32, 280)
	for i := range tokens {
		tokens[i] = r.Int32N(int32(vocab))
	}
	return map[string]prompt{
		"one segment":                 {tokens[:200], []int{0}},
		"whole sub-chunks":            {tokens[:192], []int{0, 128}},
		"a last row alone":            {tokens[:129], []int{0}},
		"short segments":              {tokens[:150], []int{0, 5, 6, 7, 40, 90, 149}},
		"segments longer than a call": {tokens[:270], []int{0, 197}},
		"segments off the first grid": {tokens[:280], []int{0, 70, 201, 203}},
		"one token":                   {tokens[:1], []int{0}},
		"every row its own segment":   {tokens[:6], []int{0, 1, 2, 3, 4, 5}},
	}
}

// Exact proves what must hold to the bit on the tiny fixture: however a prompt
// is cut into calls, whatever else the device evaluates between them, from a
// snapshot or cold, on every variant, logits and state are the same. It ends
// with two runs that must differ, so that the comparison is known to see it.
func Exact(t *testing.T, s Subject) {
	m := Load(t, s.New(t, nil), Tiny(t))
	for name, p := range exactPrompts(m.Config().Vocab) {
		t.Run(name, func(t *testing.T) {
			if testing.Short() && len(p.tokens) > 150 {
				t.Skip("a long prompt")
			}
			whole := newRun(t, m)
			whole.prefill(p, len(p.tokens))
			want := whole.finish()
			t.Run("cut", func(t *testing.T) { testCuts(t, m, p, want) })
			t.Run("snapshot", func(t *testing.T) { testSnapshots(t, m, p, want) })
			t.Run("beside another", func(t *testing.T) { testInterleaved(t, m, p, want) })
			for variant, device := range s.Variants {
				t.Run(variant, func(t *testing.T) {
					r := newRun(t, Load(t, device(t), Tiny(t)))
					r.prefillBy(p, 128)
					want.same(t, variant, r.finish())
				})
			}
		})
	}
	t.Run("following the last step", func(t *testing.T) { testFollow(t, m) })
	t.Run("two steps in flight", func(t *testing.T) { testAhead(t, m) })
	t.Run("padding is never chosen", func(t *testing.T) { testPadding(t, s) })
	t.Run("a perturbed run differs", func(t *testing.T) { testPerturbed(t, m) })
}

// testCuts cuts the prompt into calls of bounded size, at every edge, and at
// edges drawn by lot.
func testCuts(t *testing.T, m *model.Model, p prompt, want outcome) {
	seen := map[string]bool{}
	for _, chunk := range []int{64, 128, 192, 512} {
		if calls := fmt.Sprint(p.calls(0, chunk)); !seen[calls] {
			seen[calls] = true
			r := newRun(t, m)
			r.prefillBy(p, chunk)
			want.same(t, fmt.Sprintf("calls of %d rows", chunk), r.finish())
		}
	}
	every := newRun(t, m)
	for _, edge := range p.edges()[1:] {
		every.prefill(p, edge)
	}
	want.same(t, "a call a sub-chunk", every.finish())
	for seed := range 2 {
		lot, r := newSource(seed, len(p.tokens)), newRun(t, m)
		for _, edge := range p.edges()[1:] {
			if edge == len(p.tokens) || lot.IntN(3) == 0 {
				r.prefill(p, edge)
			}
		}
		want.same(t, fmt.Sprintf("calls cut by lot %d", seed), r.finish())
	}
}

// testSnapshots goes on from snapshots at every edge, of a long prompt at three:
// in the state that they were taken of, after that has gone elsewhere, and in
// another state.
func testSnapshots(t *testing.T, m *model.Model, p prompt, want outcome) {
	edges := p.edges()
	inner := edges[1 : len(edges)-1]
	if len(inner) > 3 && len(p.tokens) > 100 {
		inner = []int{inner[0], inner[len(inner)/2], inner[len(inner)-1]}
	}
	for _, edge := range inner {
		r := newRun(t, m)
		r.prefill(p, edge)
		snap, err := r.state.Save()
		if err != nil {
			t.Fatal(err)
		}
		defer snap.Close()
		if snap.Len() != edge {
			t.Errorf("snapshot of %d tokens, want %d", snap.Len(), edge)
		}
		r.prefill(p, len(p.tokens))
		want.same(t, fmt.Sprintf("saved at %d", edge), r.finish())

		if err := r.state.Restore(snap); err != nil {
			t.Fatal(err)
		}
		r.prefill(p, len(p.tokens))
		want.same(t, fmt.Sprintf("restored to %d after decoding", edge), r.finish())

		branch := newRun(t, m)
		branch.prefill(prompt{slices.Repeat([]int32{1}, 100), []int{0}}, 100)
		if err := branch.state.CopyKV(r.state, edge); err != nil {
			t.Fatal(err)
		}
		if err := branch.state.Restore(snap); err != nil {
			t.Fatal(err)
		}
		branch.prefill(p, len(p.tokens))
		want.same(t, fmt.Sprintf("branched at %d", edge), branch.finish())
	}
	r := newRun(t, m)
	r.prefill(p, edges[1])
	r.state.Reset()
	r.prefill(p, len(p.tokens))
	want.same(t, "after a reset", r.finish())
}

// testInterleaved evaluates another prompt's calls between this one's.
func testInterleaved(t *testing.T, m *model.Model, p prompt, want outcome) {
	r, other := newRun(t, m), newRun(t, m)
	noise := prompt{slices.Repeat([]int32{7, 8, 9}, 100), []int{0}}
	for i, edge := range p.edges()[1:] {
		if i < 4 {
			other.prefill(noise, 64*(i+1))
		}
		r.prefill(p, edge)
	}
	want.same(t, "with another state between the calls", r.finish())
}

// testFollow compares Follow with a Decode of the token that it follows.
func testFollow(t *testing.T, m *model.Model) {
	p := prompt{[]int32{5, 6, 7, 8}, []int{0}}
	told, following := newRun(t, m), newRun(t, m)
	told.prefill(p, 4)
	first := told.last.Argmax()
	want := told.finish()

	following.prefill(p, 4)
	got := following.contents()
	got["logits"] = slices.Clone(following.last.Logits())
	for i := range 3 {
		before := following.last
		following.follow()
		got[fmt.Sprintf("logits after step %d", i)] = slices.Clone(following.last.Logits())
		// A step keeps its token when the next is committed.
		if i == 0 && before.Argmax() != first {
			t.Errorf("first token became %d, want %d", before.Argmax(), first)
		}
	}
	want.same(t, "Follow", got)
}

// testAhead commits each step before the token that it evaluates is read. Tokens
// read late are those of a run that reads each before it goes on, and the step
// too many is undone by a Restore.
func testAhead(t *testing.T, m *model.Model) {
	const steps = 12
	p := prompt{[]int32{5, 6, 7, 8}, []int{0}}
	told, ahead := newRun(t, m), newRun(t, m)
	told.prefill(p, 4)
	var want []int32
	for range steps {
		want = append(want, told.last.Argmax())
		told.decode(want[len(want)-1])
	}

	ahead.prefill(p, 4)
	snap, err := ahead.state.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	var got []int32
	for range steps {
		step := ahead.last
		ahead.follow()
		got = append(got, step.Argmax())
	}
	if !slices.Equal(got, want) {
		t.Errorf("tokens read late are %v, want %v", got, want)
	}
	if err := ahead.state.Restore(snap); err != nil {
		t.Fatal(err)
	}
	ahead.decode(want[0])
	if got := ahead.last.Argmax(); got != want[1] {
		t.Errorf("after a step too many and a Restore the token is %d, want %d", got, want[1])
	}
}

// testPadding loads the model with a vocabulary that ends before the token that
// would be chosen: the largest logit before it is the choice, and there are no
// logits behind.
func testPadding(t *testing.T, s Subject) {
	p := prompt{[]int32{5, 6, 7, 8}, []int{0}}
	whole := newRun(t, Load(t, s.New(t, nil), Tiny(t)))
	whole.prefill(p, 4)
	all := slices.Clone(whole.last.Logits())
	tokens := int(whole.last.Argmax())
	if tokens == 0 {
		t.Fatal("the fixture chooses token 0: nothing is left of its vocabulary")
	}
	want := 0
	for i, x := range all[:tokens] {
		if x > all[want] {
			want = i
		}
	}
	r := newRun(t, LoadTokens(t, s.New(t, nil), Tiny(t), tokens))
	r.prefill(p, 4)
	if got := r.last.Argmax(); int(got) != want {
		t.Errorf("token %d of a vocabulary of %d, want %d", got, tokens, want)
	}
	if !slices.Equal(r.last.Logits(), all[:tokens]) {
		t.Errorf("%d logits, want the first %d of the whole vocabulary's to the bit", len(r.last.Logits()), tokens)
	}
	r.follow()
	whole.decode(int32(want))
	if !slices.Equal(r.last.Logits(), whole.last.Logits()[:tokens]) {
		t.Error("the step that follows evaluated another token than the choice")
	}
}

// testPerturbed evaluates the last row by the decode path, and moves the grid by
// a row: neither may pass for the same.
func testPerturbed(t *testing.T, m *model.Model) {
	p := exactPrompts(m.Config().Vocab)["one segment"]
	whole := newRun(t, m)
	whole.prefill(p, len(p.tokens))
	want := whole.finish()

	decoded := newRun(t, m)
	last := len(p.tokens) - 1
	decoded.prefill(prompt{p.tokens[:last], p.segments}, last)
	decoded.decode(p.tokens[last])
	if want.difference(decoded.finish()) == "" {
		t.Error("a last row by the decode path has the bits of the prefill path: the comparison sees nothing")
	}

	moved := newRun(t, m)
	p.segments = []int{0, 1}
	moved.prefill(p, len(p.tokens))
	if want.difference(moved.finish()) == "" {
		t.Error("another grid has the same bits: the comparison sees nothing")
	}
}
