package metal_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"calla/bundle/demo"
	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/cpu"
	"calla/core/model"
	"calla/metal"
)

// loadDemo loads the demo model for the length of the test.
func loadDemo(t *testing.T, dev backend.Device) *model.Model {
	t.Helper()
	c, err := checkpoint.Open(demo.Source(), checkpoint.Options{AnySize: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(context.Background(), dev, c, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); dev.Close(); c.Close() })
	return m
}

// greedy evaluates a prompt and up to n tokens after it, and returns them with
// the logits of every step. It follows each token on the device where follow is
// set, and is told it otherwise.
func greedy(t *testing.T, m *model.Model, prompt []int32, n int, follow bool) (tokens []int32, logits [][]float32) {
	t.Helper()
	s, err := m.NewState(len(prompt) + n)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	step, err := m.Prefill(s, prompt, []int{0}, true)
	for {
		if err != nil {
			t.Fatal(err)
		}
		tokens, logits = append(tokens, step.Argmax()), append(logits, slices.Clone(step.Logits()))
		if len(tokens) == n {
			return tokens, logits
		}
		if follow {
			step, err = m.Follow(s)
		} else {
			step, err = m.Decode(s, step.Argmax())
		}
	}
}

// TestDemo compares greedy replies of the demo model with mlx-lm's, and their
// logits with the CPU backend's.
func TestDemo(t *testing.T) { testDemo(t, emulated(t, inOrder, metal.Options{}), 60) }

// testDemo runs the cases of at most that many tokens, and one with a tool call.
func testDemo(t *testing.T, dev backend.Device, most int) {
	b, err := os.ReadFile("../core/conform/testdata/demo/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var f struct {
		Cases []struct {
			Name      string
			PromptIDs []int32 `json:"prompt_ids"`
			OutputIDs []int32 `json:"output_ids"`
		}
	}
	if err := json.Unmarshal(b, &f); err != nil {
		t.Fatal(err)
	}
	gpu, twin := loadDemo(t, dev), loadDemo(t, cpu.New(cpu.Options{}))
	for _, c := range f.Cases {
		t.Run(c.Name, func(t *testing.T) {
			if n := len(c.PromptIDs) + len(c.OutputIDs); n > most && c.Name != "tool-call" || testing.Short() && n > 40 {
				t.Skip("a long one")
			}
			got, logits := greedy(t, gpu, c.PromptIDs, len(c.OutputIDs), true)
			if !slices.Equal(got, c.OutputIDs) {
				at := 0
				for at < len(got) && got[at] == c.OutputIDs[at] {
					at++
				}
				if margin := margin(logits[at]); margin < 0.05 {
					t.Logf("near-tie at step %d: %d, mlx-lm %d, margin %.4f", at, got[at], c.OutputIDs[at], margin)
				} else {
					t.Errorf("step %d gives token %d, want %d (margin %.4f)", at, got[at], c.OutputIDs[at], margin)
				}
			}
			// Two runs that round in other places differ by a percent a layer.
			_, want := greedy(t, twin, c.PromptIDs, 1, false)
			var diff, norm float64
			for i, w := range want[0] {
				d := float64(logits[0][i] - w)
				diff, norm = diff+d*d, norm+float64(w)*float64(w)
			}
			if rms := math.Sqrt(diff / norm); !(rms < 0.05) {
				t.Errorf("logits after the prompt: relative RMS error %.3g to the CPU backend's, want below 0.05", rms)
			}
		})
	}
}

// margin returns how much larger the largest logit is than the second.
func margin(logits []float32) float32 {
	s := slices.Sorted(slices.Values(logits))
	return s[len(s)-1] - s[len(s)-2]
}
