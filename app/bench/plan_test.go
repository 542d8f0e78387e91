package bench

import (
	"slices"
	"strings"
	"testing"
)

func TestNewPlan(t *testing.T) {
	named := Plan{Prompts: []int{512, 64, 512}, Contexts: []int{100}, Tokens: 8, Runs: 5}
	for _, tt := range []struct {
		name              string
		plan              Plan
		maxSeq, lengths   int
		prompts, contexts []int
		refused           string
	}{
		{"all lengths", Plan{Tokens: 32, Runs: 5}, 200_000, Lengths,
			[]int{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}, nil, ""},
		{"just room for the longest", Plan{Tokens: 32, Runs: 5}, 131072 + 32, Lengths,
			[]int{256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}, nil, ""},
		{"a shorter context", Plan{Tokens: 32, Runs: 5}, 32768, Lengths,
			[]int{256, 384, 704, 1280, 2176, 3776, 6464, 11136, 19072, 32704}, nil, ""},
		{"quick", Plan{Tokens: 32, Runs: 5}, 8192, QuickLengths, []int{256, 1408, 8128}, nil, ""},
		{"too narrow for ten", Plan{Tokens: 32, Runs: 5}, 512, Lengths, []int{256, 320, 384, 448}, nil, ""},
		{"room for one", Plan{Tokens: 32, Runs: 5}, 288, Lengths, []int{256}, nil, ""},
		{"no room", Plan{Tokens: 32, Runs: 5}, 287, Lengths, nil, nil, "has no room for 256 prompt and 32"},
		{"named", named, 520, Lengths, []int{64, 512}, []int{100}, ""},
		{"named, too long", named, 519, Lengths, nil, nil, "prompts has 512, want 1 to 511"},
		{"prompts alone named", Plan{Prompts: []int{7}, Tokens: 32, Runs: 5}, 512, QuickLengths, []int{7}, []int{}, ""},
		{"too few runs", Plan{Tokens: 32, Runs: 4}, 8192, Lengths, nil, nil, "runs are 4"},
		{"too many runs", Plan{Tokens: 32, Runs: 1001}, 8192, Lengths, nil, nil, "runs are 1001, want at most 1000"},
		{"too few tokens", Plan{Tokens: 7, Runs: 5}, 8192, Lengths, nil, nil, "generated tokens are 7"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := NewPlan(tt.plan, tt.maxSeq, tt.lengths)
			if tt.refused != "" {
				if err == nil || !strings.Contains(err.Error(), tt.refused) {
					t.Fatalf("NewPlan = %v, %v, want an error with %q", got, err, tt.refused)
				}
				return
			}
			contexts := tt.contexts
			if contexts == nil {
				contexts = tt.prompts
			}
			if err != nil || !slices.Equal(got.Prompts, tt.prompts) || !slices.Equal(got.Contexts, contexts) {
				t.Errorf("NewPlan = %v, %v, %v, want %v, %v", got.Prompts, got.Contexts, err, tt.prompts, contexts)
			}
		})
	}
}
