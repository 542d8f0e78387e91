package cpu

import (
	"testing"

	"calla/core/checkpoint"
)

// What ScratchBytes says is what calls allocate.
func TestScratchBytes(t *testing.T) {
	small := checkpoint.Published
	small.Hidden, small.Vocab, small.Experts, small.ExpertDim = 128, 720, 16, 64
	for _, tt := range []struct {
		name                  string
		config                checkpoint.Config
		rows, tokens, threads int
	}{
		{"published, one row", checkpoint.Published, 1, 262144, 2},
		{"published, a chunk", checkpoint.Published, 512, 32768, 8},
		{"small", small, 64, 4096, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var s scratch
			if err := s.ensure(tt.config, tt.rows, tt.tokens, tt.threads); err != nil {
				t.Fatal(err)
			}
			defer s.region.free()
			m := &s.moe
			integers := len(m.rows) + len(m.experts) + len(m.order.starts) + len(m.order.entries)
			got := len(s.region.bytes) + 4*integers
			if want := scratchBytes(tt.config, tt.rows, tt.tokens, tt.threads); got != want {
				t.Errorf("%d bytes were allocated, the closed form says %d", got, want)
			}
		})
	}
}
