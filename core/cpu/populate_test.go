package cpu_test

import (
	"slices"
	"testing"

	"calla/core/checkpoint"
	"calla/core/conform"
	"calla/core/cpu"
)

// A populated state has its full size, and evaluates as any other.
func TestPopulate(t *testing.T) {
	m := conform.Load(t, cpu.New(cpu.Options{}), checkpoint.Dir("../conform/testdata/tiny"))
	var logits [2][]float32
	for i := range logits {
		s, err := m.NewState(3000)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if i == 1 {
			small := s.Bytes()
			if err := s.(*cpu.State).Populate(64); err != nil {
				t.Fatal(err)
			}
			c := m.Config()
			kv := int64(3 * 1024 * c.Layers / c.FullAttentionInterval * 2 * c.KVHeads * c.HeadDim * 2)
			if got := s.Bytes() - small; got != kv {
				t.Errorf("populating took %d bytes, want the %d of three pages of 1,024 tokens", got, kv)
			}
		}
		step, err := m.Prefill(s, []int32{1, 2, 3}, []int{0}, true)
		if err != nil {
			t.Fatal(err)
		}
		logits[i] = slices.Clone(step.Logits())
		if s.(*cpu.State).Populate(64) == nil {
			t.Error("a state with tokens was populated")
		}
	}
	if !slices.Equal(logits[0], logits[1]) {
		t.Error("a populated state has other logits")
	}
}
