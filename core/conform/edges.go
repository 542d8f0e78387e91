package conform

import (
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/model"
)

// Edges proves that calls which break the contract are refused and change
// nothing, and that a state's memory follows its contents.
func Edges(t *testing.T, s Subject) {
	m := Load(t, s.New(t, nil), Tiny(t))
	t.Run("refused calls", func(t *testing.T) { testRefusals(t, m) })
	t.Run("a copied KV cache alone", func(t *testing.T) { testTorn(t, m) })
	t.Run("restores and copies beyond what there is", func(t *testing.T) { testBeyond(t, m) })
	t.Run("a full state", func(t *testing.T) { testFull(t, m) })
	t.Run("memory", func(t *testing.T) { testMemory(t, m) })
}

func testRefusals(t *testing.T, m *model.Model) {
	vocab := int32(m.Config().Vocab)
	ids := func(n int) []int32 { return make([]int32, n) }
	for _, tt := range []struct {
		name string
		call backend.Call
	}{
		{"no phase", backend.Call{Tokens: ids(1), Segments: []int{0}}},
		{"no rows", backend.Call{Phase: backend.Prefill, Segments: []int{0}}},
		{"no segment", backend.Call{Phase: backend.Prefill, Tokens: ids(4)}},
		{"first segment behind the first row", backend.Call{Phase: backend.Prefill, Tokens: ids(4), Segments: []int{11}}},
		{"negative segment", backend.Call{Phase: backend.Prefill, Tokens: ids(4), Segments: []int{-1}}},
		{"off the grid", backend.Call{Phase: backend.Prefill, Tokens: ids(4), Segments: []int{0}}},
		{"segments fall", backend.Call{Phase: backend.Prefill, Tokens: ids(9), Segments: []int{10, 13, 12}}},
		{"the same segment twice", backend.Call{Phase: backend.Prefill, Tokens: ids(9), Segments: []int{10, 10}}},
		{"segment behind the last row", backend.Call{Phase: backend.Prefill, Tokens: ids(4), Segments: []int{10, 14}}},
		{"token beyond the vocabulary", backend.Call{Phase: backend.Prefill, Tokens: []int32{vocab}, Segments: []int{10}}},
		{"negative token", backend.Call{Phase: backend.Decode, Tokens: []int32{-1}}},
		{"more rows than fit", backend.Call{Phase: backend.Prefill, Tokens: ids(2039), Segments: []int{10}}},
		{"decode of two rows", backend.Call{Phase: backend.Decode, Tokens: ids(2)}},
		{"decode with segments", backend.Call{Phase: backend.Decode, Tokens: ids(1), Segments: []int{10}}},
		{"follow in prefill", backend.Call{Phase: backend.Prefill, Follow: true, Segments: []int{10}}},
		{"follow with a token", backend.Call{Phase: backend.Decode, Follow: true, Tokens: ids(1)}},
		{"follow a call without logits", backend.Call{Phase: backend.Decode, Follow: true}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newRun(t, m)
			p := prompt{ids(20), []int{0, 10}}
			r.prefill(p, 10)
			before := r.contents()
			if _, err := m.Weights().Begin(r.state, tt.call); err == nil {
				t.Fatal("the call was begun")
			}
			before.same(t, "state", r.contents())
			r.prefill(p, 20)
		})
	}
}

// testTorn checks that keys without the recurrent state that belongs to them
// are not continued.
func testTorn(t *testing.T, m *model.Model) {
	r, other := newRun(t, m), newRun(t, m)
	p := prompt{make([]int32, 70), []int{0}}
	r.prefill(p, 70)
	if err := other.state.CopyKV(r.state, 64); err != nil {
		t.Fatal(err)
	}
	if got := other.state.Len(); got != 64 {
		t.Errorf("Len = %d, want 64", got)
	}
	call := backend.Call{Phase: backend.Prefill, Tokens: make([]int32, 6), Segments: []int{0}}
	if _, err := m.Weights().Begin(other.state, call); err == nil {
		t.Error("a state without its recurrent part was continued")
	}
	if _, err := other.state.Save(); err == nil {
		t.Error("a state without its recurrent part was saved")
	}
	other.state.Reset()
	other.prefill(p, 70)
	r.contents().same(t, "after a reset", other.contents())
}

func testBeyond(t *testing.T, m *model.Model) {
	r, other := newRun(t, m), newRun(t, m)
	p := prompt{make([]int32, 70), []int{0}}
	r.prefill(p, 70)
	snap, err := r.state.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if err := other.state.Restore(snap); err == nil {
		t.Error("a snapshot of 70 tokens was restored to an empty KV cache")
	}
	for _, n := range []int{-1, 71} {
		if err := other.state.CopyKV(r.state, n); err == nil {
			t.Errorf("%d of 70 tokens were copied", n)
		}
	}
	other.prefill(p, 70)
	r.contents().same(t, "after refusals", other.contents())
}

func testFull(t *testing.T, m *model.Model) {
	s := newState(t, m, 3)
	step, err := m.Prefill(s, []int32{1, 2}, []int{0}, true)
	if err != nil {
		t.Fatal(err)
	}
	if step, err = m.Decode(s, step.Argmax()); err != nil {
		t.Fatal(err)
	}
	if s.Len() != 3 || s.Cap() != 3 {
		t.Errorf("Len %d, Cap %d, want 3 and 3", s.Len(), s.Cap())
	}
	if _, err := m.Decode(s, step.Argmax()); err == nil {
		t.Error("a fourth token went into a state for three")
	}
}

// testMemory checks that memory grows with use and shrinks with it.
func testMemory(t *testing.T, m *model.Model) {
	small, large := newState(t, m, 64), newState(t, m, 1<<20)
	if small.Bytes() != large.Bytes() {
		t.Errorf("empty states take %d bytes for 64 tokens and %d for a million", small.Bytes(), large.Bytes())
	}
	sizes := []int64{large.Bytes()}
	r := run{t: t, model: m, state: large}
	p := prompt{slices.Repeat([]int32{3}, 1030), []int{0}}
	r.prefillBy(p, 512)
	sizes = append(sizes, large.Bytes())
	snap, err := large.Save()
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if want := sizes[0]; snap.Bytes() != want {
		t.Errorf("a snapshot takes %d bytes, want the %d of an empty state", snap.Bytes(), want)
	}
	large.Reset()
	sizes = append(sizes, large.Bytes())
	if !(sizes[1] > sizes[0] && sizes[2] == sizes[0]) {
		t.Errorf("bytes empty, full and reset: %d, want more in the middle", sizes)
	}
}
