package conform

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Outputs compares the tiny fixture with mlx-lm as Golden does, but looks at what
// leaves a block alone: for backends whose fused kernels have no more to show.
// What they do show in a prefill, the experts chosen and values inside a layer,
// is compared too.
func Outputs(t *testing.T, s Subject) {
	files := readFolder(t, "testdata/tiny/golden")
	for _, c := range s.comparisons(bound{abs: 2e-4}) {
		t.Run(c.name, func(t *testing.T) {
			rec := &recorder{}
			m := Load(t, c.device(t, rec.observe), Tiny(t))
			g := readGolden(t, files, c.dtype)
			for _, prompt := range slices.Sorted(maps.Keys(g.Prompts)) {
				t.Run(prompt, func(t *testing.T) {
					r := goldenRun{c, g, m, rec, prompt, newState(t, m, 256)}
					r.prefillOutputs(t)
					r.states(t)
					r.decodeOutputs(t)
				})
			}
		})
	}
}

func (r *goldenRun) prefillOutputs(t *testing.T) {
	r.rec.reset()
	step, err := r.model.Prefill(r.state, r.golden.Prompts[r.prompt].Prompt, []int{0}, true)
	if err != nil {
		t.Fatal(err)
	}
	c := r.model.Config()
	logits := r.want(t, "logits")
	r.logits.check(t, "logits", step.Logits(), logits[len(logits)-c.Vocab:])
	r.token(t, step, 0)
	r.hidden.check(t, "embed", tail(r.rec.get(-1, "embed"), r.want(t, "embed")), r.want(t, "embed"))
	for i := range c.Layers {
		want := r.want(t, "layer.%d", i)
		r.hidden.check(t, fmt.Sprintf("layer %d", i), tail(r.rec.get(i, "residual"), want), want)
		if got := r.rec.get(i, "router.experts"); got != nil {
			if want := r.want(t, "router.%d.idx", i); !sameExperts(got, want, c.ExpertsPerToken) {
				t.Errorf("layer %d: experts %v, want %v", i, got, want)
			}
		}
	}
	for _, tap := range taps(c) {
		for _, layer := range []int{0, 3} {
			want, ok := r.golden.arrays[fmt.Sprintf("%s.tap.%d.%s", r.prompt, layer, tap.golden)]
			if got := r.rec.get(layer, tap.name); ok && got != nil {
				r.hidden.check(t, fmt.Sprintf("layer %d %s", layer, tap.golden), tap.take(got), want)
			}
		}
	}
}

// decodeOutputs feeds the golden tokens, one a step.
func (r *goldenRun) decodeOutputs(t *testing.T) {
	c := r.model.Config()
	layers, logits := r.want(t, "decode.layers"), r.want(t, "decode.logits")
	for step := range r.golden.Steps {
		r.rec.reset()
		got, err := r.model.Decode(r.state, r.golden.Prompts[r.prompt].Tokens[step])
		if err != nil {
			t.Fatal(err)
		}
		r.logits.check(t, fmt.Sprintf("step %d logits", step), got.Logits(), logits[step*c.Vocab:][:c.Vocab])
		r.token(t, got, step+1)
		for i := range c.Layers {
			r.hidden.check(t, fmt.Sprintf("step %d layer %d", step, i),
				r.rec.get(i, "residual"), layers[(step*c.Layers+i)*c.Hidden:][:c.Hidden])
		}
	}
}
