package checkpoint

import (
	"fmt"
	"math"
	"slices"
)

// configFile is the file that says what a checkpoint is.
const configFile = "config.json"

// dimension is an integer of text_config that becomes a field of Config. The
// bounds hold for any size; they keep products of dimensions far below 2^63.
type dimension struct {
	name     string
	field    func(c *Config) *int
	min, max int
	absent   int // value where the file does not say; 0: it must
}

// dimensions are in the order in which a difference is looked for.
var dimensions = []dimension{
	{"num_hidden_layers", func(c *Config) *int { return &c.Layers }, 1, 1024, 0},
	{"hidden_size", func(c *Config) *int { return &c.Hidden }, quantGroup, 1 << 16, 0},
	{"num_attention_heads", func(c *Config) *int { return &c.Heads }, 1, 1024, 0},
	{"num_key_value_heads", func(c *Config) *int { return &c.KVHeads }, 1, 1024, 0},
	{"head_dim", func(c *Config) *int { return &c.HeadDim }, 2, 1024, 0},
	{"linear_num_key_heads", func(c *Config) *int { return &c.DeltaKeyHeads }, 1, 1024, 0},
	{"linear_num_value_heads", func(c *Config) *int { return &c.DeltaValueHeads }, 1, 1024, 0},
	{"linear_key_head_dim", func(c *Config) *int { return &c.DeltaKeyDim }, 2, 1024, 0},
	{"linear_value_head_dim", func(c *Config) *int { return &c.DeltaValueDim }, 2, 1024, 0},
	{"linear_conv_kernel_dim", func(c *Config) *int { return &c.ConvTaps }, 4, 4, 0},
	{"num_experts", func(c *Config) *int { return &c.Experts }, 1, 4096, 0},
	{"num_experts_per_tok", func(c *Config) *int { return &c.ExpertsPerToken }, 1, 4096, 0},
	{"moe_intermediate_size", func(c *Config) *int { return &c.ExpertDim }, quantGroup, 1 << 16, 0},
	{"shared_expert_intermediate_size", func(c *Config) *int { return &c.SharedExpertDim }, quantGroup, 1 << 16, 0},
	{"full_attention_interval", func(c *Config) *int { return &c.FullAttentionInterval }, 1, 1024, 4},
	{"vocab_size", func(c *Config) *int { return &c.Vocab }, 1, 1 << 24, 0},
	{"max_position_embeddings", func(c *Config) *int { return &c.MaxPositions }, 1, 1 << 24, 0},
}

// readText reads the dimensions of text_config and checks the fields that have
// one value at any size.
func readText(root, text value) (Config, error) {
	c := Config{NormEps: Published.NormEps}
	for _, d := range dimensions {
		if err := d.read(&c, text); err != nil {
			return Config{}, err
		}
	}
	if err := checkFixed(text); err != nil {
		return Config{}, err
	}
	if err := checkTied(root, text); err != nil {
		return Config{}, err
	}
	if err := readRope(&c, text); err != nil {
		return Config{}, err
	}
	return c, checkLayerTypes(c, text)
}

func (d dimension) read(c *Config, text value) error {
	v, ok := text.get(d.name)
	if !ok {
		if d.absent == 0 {
			return fmt.Errorf("text_config.%s is missing", d.name)
		}
		*d.field(c) = d.absent
		return nil
	}
	n, ok := v.integer()
	if d.min == d.max && (!ok || n != d.min) {
		return fmt.Errorf("text_config.%s: %v, want %d", d.name, v, d.min)
	}
	if !ok || n < d.min || n > d.max {
		return fmt.Errorf("text_config.%s: %v, want an integer from %d to %d", d.name, v, d.min, d.max)
	}
	*d.field(c) = n
	return nil
}

// checkFixed checks what selects code, not sizes.
func checkFixed(text value) error {
	for _, f := range []struct {
		name, want string
		optional   bool
	}{
		{"hidden_act", `"silu"`, false},
		{"attention_bias", "false", false},
		{"attn_output_gate", "true", true},
		{"norm_topk_prob", "true", true},
		{"mlp_only_layers", "[]", true},
		{"decoder_sparse_step", "1", true},
		{"rope_scaling", "null", true},
	} {
		v, ok := text.get(f.name)
		if !ok && f.optional {
			continue
		}
		if !ok {
			return fmt.Errorf("text_config.%s is missing, want %s", f.name, f.want)
		}
		if v.compact() != f.want {
			return fmt.Errorf("text_config.%s: %v, want %s", f.name, v, f.want)
		}
	}
	// The gate behind the delta rule; swish is another name of silu.
	if v, ok := text.get("output_gate_type"); ok && v != `"silu"` && v != `"swish"` {
		return fmt.Errorf(`text_config.output_gate_type: %v, want "swish"`, v)
	}
	v, _ := text.get("rms_norm_eps")
	if eps, ok := v.number(); !ok || eps != 1e-6 {
		return fmt.Errorf("text_config.rms_norm_eps: %v, want 1e-06", v)
	}
	return nil
}

// checkTied checks that the head has weights of its own. The field may stand at
// either level.
func checkTied(root, text value) error {
	found := false
	for _, at := range []struct {
		v    value
		name string
	}{{text, "text_config.tie_word_embeddings"}, {root, "tie_word_embeddings"}} {
		v, ok := at.v.get("tie_word_embeddings")
		if ok && v != "false" {
			return fmt.Errorf("%s: %v, want false", at.name, v)
		}
		found = found || ok
	}
	if !found {
		return fmt.Errorf("text_config.tie_word_embeddings is missing, want false")
	}
	return nil
}

// readRope reads how positions turn a head. The sections of mrope share the
// rotated pairs out to three position numbers, which are one and the same for
// text, so only their sum matters.
func readRope(c *Config, text value) error {
	rope, ok := text.get("rope_parameters")
	if !ok || !rope.isObject() {
		return fmt.Errorf("text_config.rope_parameters: want an object")
	}
	kind, ok := rope.get("rope_type")
	if !ok {
		kind, _ = rope.get("type")
	}
	if t, _ := kind.text(); t != "default" {
		return fmt.Errorf(`text_config.rope_parameters.rope_type: %v, want "default"`, kind)
	}
	theta, err := ropeNumber(rope, text, "rope_theta", 1e12)
	if err != nil {
		return err
	}
	factor, err := ropeNumber(rope, text, "partial_rotary_factor", 1)
	if err != nil {
		return err
	}
	rotary := factor * float64(c.HeadDim)
	if rotary != math.Trunc(rotary) {
		return fmt.Errorf("text_config.rope_parameters.partial_rotary_factor: %v of head_dim %d is no whole number", factor, c.HeadDim)
	}
	c.RopeTheta, c.RotaryDims = theta, int(rotary)
	return checkSections(rope, c.RotaryDims/2)
}

// ropeNumber reads a positive number of rope_parameters. Older files have it in
// text_config too, where it must be the same.
func ropeNumber(rope, text value, name string, most float64) (float64, error) {
	v, _ := rope.get(name)
	x, ok := v.number()
	if !ok || x <= 0 || x > most {
		return 0, fmt.Errorf("text_config.rope_parameters.%s: %v, want a number above 0, at most %v", name, v, most)
	}
	if again, ok := text.get(name); ok {
		if y, ok := again.number(); !ok || y != x {
			return 0, fmt.Errorf("text_config.%s: %v, but %v in rope_parameters", name, again, x)
		}
	}
	return x, nil
}

func checkSections(rope value, pairs int) error {
	if v, _ := rope.get("mrope_interleaved"); v != "true" {
		return fmt.Errorf("text_config.rope_parameters.mrope_interleaved: %v, want true", v)
	}
	sections, _ := rope.get("mrope_section")
	count, sum := 0, 0
	for v := range sections.items() {
		n, ok := v.integer()
		if !ok || n < 0 || n > pairs {
			count = 0
			break
		}
		count, sum = count+1, sum+n
	}
	if count != 3 || sum != pairs {
		return fmt.Errorf("text_config.rope_parameters.mrope_section: %v, want three numbers with the sum %d", sections, pairs)
	}
	return nil
}

// checkLayerTypes compares the list of layers, where there is one, with the
// interval that the other dimensions are read by.
func checkLayerTypes(c Config, text value) error {
	types, ok := text.get("layer_types")
	if !ok {
		return nil
	}
	layer := 0
	for v := range types.items() {
		want := "linear_attention"
		if c.FullAttention(layer) {
			want = "full_attention"
		}
		if got, _ := v.text(); got != want && layer < c.Layers {
			return fmt.Errorf("text_config.layer_types: layer %d is %v, want %q by full_attention_interval %d", layer, v, want, c.FullAttentionInterval)
		}
		layer++
	}
	if layer != c.Layers {
		return fmt.Errorf("text_config.layer_types: %d layers, want %d", layer, c.Layers)
	}
	return nil
}

// consistent checks what the kernels need of any size. Bounds of single
// dimensions are in the table above.
func consistent(c Config) error {
	for _, rule := range []struct {
		what  string
		value int
		holds bool
		want  string
	}{
		{"hidden_size", c.Hidden, c.Hidden%quantGroup == 0, "a multiple of 64"},
		{"moe_intermediate_size", c.ExpertDim, c.ExpertDim%quantGroup == 0, "a multiple of 64"},
		{"shared_expert_intermediate_size", c.SharedExpertDim, c.SharedExpertDim%quantGroup == 0, "a multiple of 64"},
		{"num_attention_heads × head_dim", c.Heads * c.HeadDim, c.Heads*c.HeadDim%quantGroup == 0, "a multiple of 64"},
		{"linear_num_value_heads × linear_value_head_dim", valueWidth(c), valueWidth(c)%quantGroup == 0, "a multiple of 64"},
		{"head_dim", c.HeadDim, c.HeadDim%2 == 0, "an even number"},
		{"the rotated part of head_dim", c.RotaryDims, c.RotaryDims > 0 && c.RotaryDims%2 == 0, "an even number above 0"},
		{"linear_key_head_dim", c.DeltaKeyDim, c.DeltaKeyDim%2 == 0, "an even number"},
		{"linear_value_head_dim", c.DeltaValueDim, c.DeltaValueDim%2 == 0, "an even number"},
		{"num_attention_heads", c.Heads, c.Heads%c.KVHeads == 0, fmt.Sprintf("a multiple of num_key_value_heads %d", c.KVHeads)},
		{"linear_num_value_heads", c.DeltaValueHeads, c.DeltaValueHeads%c.DeltaKeyHeads == 0,
			fmt.Sprintf("a multiple of linear_num_key_heads %d", c.DeltaKeyHeads)},
		{"num_experts_per_tok", c.ExpertsPerToken, c.ExpertsPerToken <= c.Experts, fmt.Sprintf("at most num_experts %d", c.Experts)},
	} {
		if !rule.holds {
			return fmt.Errorf("text_config: %s: %d, want %s", rule.what, rule.value, rule.want)
		}
	}
	return nil
}

// accept decides whether a size may run.
func accept(c Config, o Options) error {
	if o.AnySize {
		return consistent(c)
	}
	exact := o.Exact
	if len(exact) == 0 {
		exact = []Config{Published}
	}
	if slices.Contains(exact, c) {
		return nil
	}
	return fmt.Errorf("%s; other sizes of this architecture run only with --any-size, for development", difference(c, exact[0]))
}

// difference names the first field in which two configurations differ.
func difference(got, want Config) string {
	not := "not the size that runs here"
	if want == Published {
		not = "not Qwen3.6-35B-A3B (" + Repository + ")"
	}
	for _, d := range dimensions {
		if g, w := *d.field(&got), *d.field(&want); g != w {
			return fmt.Sprintf("%s: text_config.%s is %d, want %d", not, d.name, g, w)
		}
	}
	if got.RotaryDims != want.RotaryDims {
		return fmt.Sprintf("%s: text_config.rope_parameters.partial_rotary_factor turns %d dimensions of a head, want %d",
			not, got.RotaryDims, want.RotaryDims)
	}
	return fmt.Sprintf("%s: text_config.rope_parameters.rope_theta is %v, want %v", not, got.RopeTheta, want.RopeTheta)
}
