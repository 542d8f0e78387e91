package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/model"
)

// goldenFile is what golden.py says beside its arrays.
type goldenFile struct {
	Steps   int
	Prompts map[string]struct {
		Prompt []int32
		Tokens []int32 // the greedy continuation
	}
	arrays arrays
}

func readGolden(t testing.TB, files map[string][]byte, dtype string) goldenFile {
	t.Helper()
	var g goldenFile
	if err := json.Unmarshal(files["golden_"+dtype+".json"], &g); err != nil {
		t.Fatal(err)
	}
	g.arrays = parseArrays(t, files["golden_"+dtype+".safetensors"])
	return g
}

// comparison is one run of a device against one set of golden values, and how
// close it must be. Float32 rounding and another order of sums cost 1e-5, a
// wrong formula 1e-1. bfloat16 between operations costs 2 % after eight layers;
// two runs that round at different points differ by more than each does from
// the exact one. 2 % of logits of spread 3 make 0.06, and 0.09 between two.
type comparison struct {
	name           string
	device         func(testing.TB, Observe) backend.Device
	dtype          string
	hidden, logits bound
	weights        bound   // of the experts
	tie            float64 // logits nearer than this may change places
}

// exact is the bound of float32 against float32.
func (s Subject) comparisons(exact bound) []comparison {
	list := []comparison{
		{"rounded/golden_bf16", s.New, "bf16", bound{rms: 0.06}, bound{rms: 0.07}, bound{rms: 0.06}, 0.1},
		{"rounded/golden_f32", s.New, "f32", bound{rms: 0.04}, bound{rms: 0.05}, bound{rms: 0.04}, 0.1},
	}
	if s.Precise != nil {
		list = append(list, comparison{"precise/golden_f32", s.Precise, "f32", exact, exact, exact, 0})
	}
	return list
}

// Golden compares the tiny fixture with mlx-lm: every layer's output, in prefill
// and decode, the states, the experts chosen, the values inside a layer of each
// kind, logits and greedy tokens.
func Golden(t *testing.T, s Subject) {
	files := readFolder(t, "testdata/tiny/golden")
	for _, c := range s.comparisons(bound{abs: 2e-4}) {
		t.Run(c.name, func(t *testing.T) {
			rec := &recorder{}
			m := Load(t, c.device(t, rec.observe), Tiny(t))
			g := readGolden(t, files, c.dtype)
			for _, prompt := range slices.Sorted(maps.Keys(g.Prompts)) {
				t.Run(prompt, func(t *testing.T) {
					r := goldenRun{c, g, m, rec, prompt, newState(t, m, 256)}
					r.prefill(t)
					r.states(t)
					r.decode(t)
				})
			}
		})
	}
}

// goldenRun is one prompt of a comparison.
type goldenRun struct {
	comparison
	golden goldenFile
	model  *model.Model
	rec    *recorder
	prompt string
	state  backend.State
}

func (r *goldenRun) want(t testing.TB, name string, args ...any) []float32 {
	t.Helper()
	return r.golden.arrays.get(t, r.prompt+"."+name, args...)
}

func (r *goldenRun) prefill(t *testing.T) {
	p := r.golden.Prompts[r.prompt]
	r.rec.reset()
	step, err := r.model.Prefill(r.state, p.Prompt, []int{0}, true)
	if err != nil {
		t.Fatal(err)
	}
	c := r.model.Config()
	r.hidden.check(t, "embed", tail(r.rec.get(-1, "embed"), r.want(t, "embed")), r.want(t, "embed"))
	for i := range c.Layers {
		want := r.want(t, "layer.%d", i)
		r.hidden.check(t, fmt.Sprintf("layer %d", i), tail(r.rec.get(i, "residual"), want), want)
		r.experts(t, i, r.want(t, "router.%d.idx", i), r.want(t, "router.%d.p", i))
	}
	norm := r.want(t, "norm")
	r.hidden.check(t, "norm", r.rec.get(-1, "norm"), norm[len(norm)-c.Hidden:])
	logits := r.want(t, "logits")
	r.logits.check(t, "logits", step.Logits(), logits[len(logits)-c.Vocab:])
	r.token(t, step, 0)
	for _, tap := range taps(c) {
		for _, layer := range []int{0, 3} {
			if want, ok := r.golden.arrays[fmt.Sprintf("%s.tap.%d.%s", r.prompt, layer, tap.golden)]; ok {
				r.hidden.check(t, fmt.Sprintf("layer %d %s", layer, tap.golden), tap.take(r.rec.get(layer, tap.name)), want)
			}
		}
	}
}

// tail returns the last len(of) values.
func tail(values, of []float32) []float32 {
	if len(values) < len(of) {
		return values
	}
	return values[len(values)-len(of):]
}

// experts compares the chosen experts of all rows, as sets, and their weights.
func (r *goldenRun) experts(t *testing.T, layer int, wantExperts, wantWeights []float32) {
	t.Helper()
	k := r.model.Config().ExpertsPerToken
	got, weights := r.rec.get(layer, "router.experts"), r.rec.get(layer, "router.weights")
	if len(got) != len(wantExperts) {
		t.Errorf("layer %d: %d choices of experts, want %d", layer, len(got), len(wantExperts))
		return
	}
	var gotWeights []float32
	for at := 0; at < len(got); at += k {
		row := got[at : at+k]
		for _, e := range wantExperts[at : at+k] {
			i := slices.Index(row, e)
			if i < 0 {
				t.Errorf("layer %d, row %d: experts %v, want %v", layer, at/k, row, wantExperts[at:at+k])
				return
			}
			gotWeights = append(gotWeights, weights[at+i])
		}
	}
	if wantWeights != nil {
		r.weights.check(t, fmt.Sprintf("layer %d expert weights", layer), gotWeights, wantWeights)
	}
}

// states compares the state after the prefill, as far as there are values.
func (r *goldenRun) states(t *testing.T) {
	s, ok := r.state.(Inspector)
	if !ok {
		t.Fatalf("%T shows no contents", r.state)
	}
	for i := range r.model.Config().Layers {
		for _, part := range []struct {
			name string
			read func(int) []float32
		}{
			{"ssm", s.Recurrent}, {"conv", s.Conv}, {"k", s.Keys}, {"v", s.Values},
		} {
			if want, ok := r.golden.arrays[fmt.Sprintf("%s.state.%d.%s", r.prompt, i, part.name)]; ok {
				r.hidden.check(t, fmt.Sprintf("state of layer %d %s", i, part.name), part.read(i), want)
			}
		}
	}
}

// decode feeds the golden tokens, one a step.
func (r *goldenRun) decode(t *testing.T) {
	c := r.model.Config()
	layers, logits := r.want(t, "decode.layers"), r.want(t, "decode.logits")
	experts := r.want(t, "decode.router.idx")
	for step := range r.golden.Steps {
		r.rec.reset()
		got, err := r.model.Decode(r.state, r.golden.Prompts[r.prompt].Tokens[step])
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Layers {
			at := step*c.Layers + i
			r.hidden.check(t, fmt.Sprintf("step %d layer %d", step, i),
				r.rec.get(i, "residual"), layers[at*c.Hidden:][:c.Hidden])
			r.experts(t, i, experts[at*c.ExpertsPerToken:][:c.ExpertsPerToken], nil)
		}
		r.logits.check(t, fmt.Sprintf("step %d logits", step), got.Logits(), logits[step*c.Vocab:][:c.Vocab])
		r.token(t, got, step+1)
	}
}

// token compares the greedy token after a call. All margins of the fixture are
// above 0.3, so no rounding excuses another.
func (r *goldenRun) token(t *testing.T, step backend.Step, n int) {
	t.Helper()
	if got, want := step.Argmax(), r.golden.Prompts[r.prompt].Tokens[n]; got != want {
		t.Errorf("greedy token %d: %d, want %d", n, got, want)
	}
}

// recorder keeps what a device showed of one call.
type recorder struct{ values map[string][]float32 }

func (r *recorder) reset() { r.values = map[string][]float32{} }

func (r *recorder) observe(layer int, name string, _ int, values []float32) {
	if r.values != nil {
		r.values[fmt.Sprint(layer, " ", name)] = slices.Clone(values)
	}
}

func (r *recorder) get(layer int, name string) []float32 {
	return r.values[fmt.Sprint(layer, " ", name)]
}

// tap names a value inside a layer in golden.py and here, and how to take the
// one out of the other.
type tap struct {
	golden, name string
	take         func([]float32) []float32
}

func taps(c checkpoint.Config) []tap {
	same := func(v []float32) []float32 { return v }
	key, conv := c.DeltaKeyHeads*c.DeltaKeyDim, c.ConvDim()
	heads, dim := c.Heads, c.HeadDim
	query := func(v []float32) []float32 { return columns(v, 2*dim, 0, dim) }
	return []tap{
		{"input_layernorm", "norm.input", same},
		{"post_attention_layernorm", "norm.post", same},
		{"linear_attn.in_proj_qkv", "delta.qkv", same},
		{"linear_attn.in_proj_z", "delta.z", same},
		{"linear_attn.in_proj_b", "delta.b", same},
		{"linear_attn.in_proj_a", "delta.a", same},
		{"gdn.q", "delta.qkv.normed", func(v []float32) []float32 { return columns(v, conv, 0, key) }},
		{"gdn.k", "delta.qkv.normed", func(v []float32) []float32 { return columns(v, conv, key, 2*key) }},
		{"gdn.v", "delta.qkv.normed", func(v []float32) []float32 { return columns(v, conv, 2*key, conv) }},
		{"gdn.beta", "delta.beta", same},
		{"gdn.decay", "delta.decay", exponentials},
		{"gdn.out", "delta.o", same},
		{"linear_attn.norm", "delta.gated", same},
		{"linear_attn.out_proj", "delta.out", same},
		{"self_attn.q_proj", "attention.qg", same},
		{"self_attn.k_proj", "attention.k", same},
		{"self_attn.v_proj", "attention.v", same},
		{"self_attn.q_norm", "attention.qg.normed", query},
		{"self_attn.k_norm", "attention.k.normed", same},
		{"self_attn.rope", "attention.qg.roped", func(v []float32) []float32 { return headsFirst(query(v), heads, dim) }},
		{"self_attn.rope.2", "attention.k.roped", func(v []float32) []float32 { return headsFirst(v, c.KVHeads, dim) }},
		{"self_attn.o_proj", "attention.out", same},
		{"mlp", "moe.out", same},
		{"mlp.shared_expert", "moe.shared", same},
		{"mlp.shared_expert_gate", "router.mix", same},
	}
}
