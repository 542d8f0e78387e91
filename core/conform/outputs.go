package conform

import (
	"fmt"
	"maps"
	"slices"
	"testing"
)

// Outputs compares the tiny fixture with mlx-lm as Golden does, but looks at what
// leaves a block alone: for backends whose fused kernels have no more to show.
// What they do show, the experts chosen and values inside a layer, is compared
// too: of a prefill, and of decode, which gets the last row of each prompt.
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
					r.state = newState(t, m, 256)
					r.lastRow(t)
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
		r.shownExperts(t, i, r.want(t, "router.%d.idx", i))
	}
	r.shownTaps(t, func(_, want []float32) []float32 { return want })
}

// shownTaps compares values inside layers as far as they are shown. part takes
// from the golden ones what belongs to those.
func (r *goldenRun) shownTaps(t *testing.T, part func(got, want []float32) []float32) {
	t.Helper()
	for _, tap := range taps(r.model.Config()) {
		for _, layer := range []int{0, 3} {
			want, ok := r.golden.arrays[fmt.Sprintf("%s.tap.%d.%s", r.prompt, layer, tap.golden)]
			if shown := r.rec.get(layer, tap.name); ok && shown != nil {
				got := tap.take(shown)
				r.hidden.check(t, fmt.Sprintf("layer %d %s", layer, tap.golden), got, part(got, want))
			}
		}
	}
}

// lastRow decodes the prompt's last row after a prefill of those before, and
// compares it with what the golden prefill has of that row.
func (r *goldenRun) lastRow(t *testing.T) {
	c, prompt := r.model.Config(), r.golden.Prompts[r.prompt].Prompt
	last := len(prompt) - 1
	if _, err := r.model.Prefill(r.state, prompt[:last], []int{0}, false); err != nil {
		t.Fatal(err)
	}
	r.rec.reset()
	step, err := r.model.Decode(r.state, prompt[last])
	if err != nil {
		t.Fatal(err)
	}
	r.logits.check(t, "logits of the last row", step.Logits(), tail(r.want(t, "logits"), step.Logits()))
	r.token(t, step, 0)
	for i := range c.Layers {
		got := r.rec.get(i, "residual")
		r.hidden.check(t, fmt.Sprintf("last row, layer %d", i), got, tail(r.want(t, "layer.%d", i), got))
		r.shownExperts(t, i, tail(r.want(t, "router.%d.idx", i), make([]float32, c.ExpertsPerToken)))
	}
	r.shownTaps(t, func(got, want []float32) []float32 { return tail(want, got) })
}

// shownExperts compares the experts chosen, where they are shown.
func (r *goldenRun) shownExperts(t *testing.T, layer int, want []float32) {
	t.Helper()
	got := r.rec.get(layer, "router.experts")
	if got != nil && !sameExperts(got, want, r.model.Config().ExpertsPerToken) {
		t.Errorf("layer %d: experts %v, want %v", layer, got, want)
	}
}

// decodeOutputs feeds the golden tokens, one a step.
func (r *goldenRun) decodeOutputs(t *testing.T) {
	c := r.model.Config()
	layers, logits := r.want(t, "decode.layers"), r.want(t, "decode.logits")
	experts := r.want(t, "decode.router.idx")
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
			r.shownExperts(t, i, experts[(step*c.Layers+i)*c.ExpertsPerToken:][:c.ExpertsPerToken])
		}
	}
}
