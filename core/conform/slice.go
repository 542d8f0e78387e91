package conform

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/model"
)

// sliceFile is what slice_golden.py says beside its arrays.
type sliceFile struct {
	Steps, Stride int
	Prompts       map[string]struct {
		Prompt  []int32
		Rows    []int     // rows of the prompt that are kept
		Tokens  []int32   // the greedy continuation
		Margins []float64 // by how much each token's logit is the largest
	}
	arrays arrays
}

// sliceCheckpoints names the checkpoints at real dimensions: the golden files, and the
// environment variable with the folder.
var sliceCheckpoints = []struct{ golden, variable string }{
	{"slice", "CALLA_SLICE"},
	{"full_vocabulary", "CALLA_SLICE_FULL_VOCABULARY"},
}

// Slice compares four layers at real dimensions with mlx-lm, with the real
// vocabulary too. The checkpoints are made on the spot (testdata/slice/README.md
// says how) and looked for where the environment says; without, it skips.
func Slice(t *testing.T, s Subject) {
	files := readFolder(t, "testdata/slice")
	// At these widths the order of sums alone, prefill's against decode's, moves
	// the experts' weights by 6e-5 of their size and the logits by 4e-4.
	exact := bound{abs: 1e-3}
	for _, sc := range sliceCheckpoints {
		t.Run(sc.golden, func(t *testing.T) {
			dir := os.Getenv(sc.variable)
			if s.Slow && sc.golden != "full_vocabulary" {
				t.Skip("a slow device: the real vocabulary is enough")
			}
			if dir == "" {
				t.Skipf("%s names no checkpoint; core/conform/testdata/slice/README.md says how to make one", sc.variable)
			}
			var g sliceFile
			if err := json.Unmarshal(files[sc.golden+".json"], &g); err != nil {
				t.Fatal(err)
			}
			g.arrays = parseArrays(t, files[sc.golden+".safetensors"])
			steps := g.Steps
			if s.Slow {
				steps = 1
			}
			for _, c := range s.comparisons(exact) {
				if c.dtype == "f32" {
					t.Run(c.name, func(t *testing.T) { g.compare(t, c, dir, steps) })
				}
			}
		})
	}
}

// compare runs the prompts, and so many steps after each.
func (g sliceFile) compare(t *testing.T, c comparison, dir string, steps int) {
	rec := &recorder{}
	m := Load(t, c.device(t, rec.observe), checkpoint.Dir(dir))
	for _, name := range slices.Sorted(maps.Keys(g.Prompts)) {
		t.Run(name, func(t *testing.T) {
			r := sliceRun{c, g, m, rec, name, newState(t, m, 256)}
			r.prefill(t)
			r.states(t)
			r.decode(t, steps)
		})
	}
}

// sliceRun is one prompt of a comparison.
type sliceRun struct {
	comparison
	golden sliceFile
	model  *model.Model
	rec    *recorder
	prompt string
	state  backend.State
}

func (r *sliceRun) want(t testing.TB, name string, args ...any) []float32 {
	t.Helper()
	return r.golden.arrays.get(t, r.prompt+"."+name, args...)
}

// kept returns the rows of the prompt that the golden file has.
func (r *sliceRun) kept(values []float32, width int) []float32 {
	var out []float32
	for _, row := range r.golden.Prompts[r.prompt].Rows {
		if (row+1)*width <= len(values) {
			out = append(out, values[row*width:][:width]...)
		}
	}
	return out
}

func (r *sliceRun) prefill(t *testing.T) {
	c := r.model.Config()
	r.rec.reset()
	step, err := r.model.Prefill(r.state, r.golden.Prompts[r.prompt].Prompt, []int{0}, true)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Layers {
		r.hidden.check(t, fmt.Sprintf("layer %d", i), r.kept(r.rec.get(i, "residual"), c.Hidden), r.want(t, "layer.%d", i))
		got := r.kept(r.rec.get(i, "router.experts"), c.ExpertsPerToken)
		if want := r.want(t, "router.%d.idx", i); !sameExperts(got, want, c.ExpertsPerToken) {
			t.Errorf("layer %d: experts %v, want %v", i, got, want)
		}
	}
	r.check(t, step, 0, r.want(t, "logits"))
}

// check compares the logits that the golden file has, and the greedy token.
func (r *sliceRun) check(t *testing.T, step backend.Step, n int, want []float32) {
	t.Helper()
	var got []float32
	for i, v := range step.Logits() {
		if i%r.golden.Stride == 0 {
			got = append(got, v)
		}
	}
	r.logits.check(t, fmt.Sprintf("logits of step %d", n), got, want)
	p := r.golden.Prompts[r.prompt]
	switch got, want := step.Argmax(), p.Tokens[n]; {
	case got == want:
	case p.Margins[n] < r.tie:
		t.Logf("greedy token %d: %d and %d are %.2g apart, near enough for rounding to decide", n, got, want, p.Margins[n])
	default:
		t.Errorf("greedy token %d: %d, want %d", n, got, want)
	}
}

// states compares the corners of the state that the golden file has.
func (r *sliceRun) states(t *testing.T) {
	c, s := r.model.Config(), r.state.(Inspector)
	head, kept := c.DeltaValueDim*c.DeltaKeyDim, 4*c.DeltaKeyDim
	for i := range c.Layers {
		if c.FullAttention(i) {
			last := func(v []float32) []float32 {
				n := r.state.Len() * c.HeadDim
				return columns(v, n, n-c.HeadDim, n)
			}
			r.hidden.check(t, fmt.Sprintf("keys of layer %d", i), last(s.Keys(i)), r.want(t, "state.%d.k", i))
			r.hidden.check(t, fmt.Sprintf("values of layer %d", i), last(s.Values(i)), r.want(t, "state.%d.v", i))
			continue
		}
		recurrent := s.Recurrent(i)
		corners := slices.Concat(recurrent[:kept], recurrent[len(recurrent)-head:][:kept])
		r.hidden.check(t, fmt.Sprintf("recurrent state of layer %d", i), corners, r.want(t, "state.%d.ssm", i))
		r.hidden.check(t, fmt.Sprintf("conv state of layer %d", i),
			columns(s.Conv(i), c.ConvDim(), c.ConvDim()-512, c.ConvDim()), r.want(t, "state.%d.conv", i))
	}
}

func (r *sliceRun) decode(t *testing.T, steps int) {
	c := r.model.Config()
	hidden, logits := r.want(t, "decode.layers"), r.want(t, "decode.logits")
	width := len(logits) / r.golden.Steps
	for n := range steps {
		r.rec.reset()
		step, err := r.model.Decode(r.state, r.golden.Prompts[r.prompt].Tokens[n])
		if err != nil {
			t.Fatal(err)
		}
		r.hidden.check(t, fmt.Sprintf("last layer of step %d", n+1),
			r.rec.get(c.Layers-1, "residual"), hidden[n*c.Hidden:][:c.Hidden])
		r.check(t, step, n+1, logits[n*width:][:width])
	}
}

// sameExperts reports whether rows of k experts are the same sets.
func sameExperts(got, want []float32, k int) bool {
	if len(got) != len(want) {
		return false
	}
	for at := 0; at < len(got); at += k {
		a, b := slices.Clone(got[at:at+k]), slices.Clone(want[at:at+k])
		slices.Sort(a)
		slices.Sort(b)
		if !slices.Equal(a, b) {
			return false
		}
	}
	return true
}
