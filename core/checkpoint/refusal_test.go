package checkpoint_test

import (
	"strings"
	"testing"

	"calla/core/checkpoint"
	"calla/core/checkpoint/checkpointtest"
)

type (
	synthetic = checkpointtest.Checkpoint
	object    = map[string]any
)

const repository = "mlx-community/Qwen3.6-35B-A3B-4bit"

// refusal is one thing that is wrong with a checkpoint, and words that the
// error must have: what it is, where, and what is wanted.
type refusal struct {
	name   string
	change func(c *synthetic)
	words  []string
}

// refuse runs each refusal on a checkpoint in two shards that is good otherwise.
func refuse(t *testing.T, o checkpoint.Options, refusals []refusal) {
	t.Helper()
	for _, tt := range refusals {
		t.Run(tt.name, func(t *testing.T) {
			c := checkpointtest.New(checkpointtest.Small, 2)
			tt.change(c)
			_, err := checkpoint.Open(c.Source(), o)
			if err == nil {
				t.Fatal("opened, want a refusal")
			}
			for _, w := range append(tt.words, "checkpoint: synthetic: ") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want the words %q", err, w)
				}
			}
		})
	}
}

var anySize = checkpoint.Options{AnySize: true}

// set changes one field of text_config.
func set(name string, v any) func(c *synthetic) {
	return func(c *synthetic) { c.Text()[name] = v }
}

func setRope(name string, v any) func(c *synthetic) {
	return func(c *synthetic) { c.Text()["rope_parameters"].(object)[name] = v }
}

func setRoot(name string, v any) func(c *synthetic) {
	return func(c *synthetic) { c.Config[name] = v }
}

func file(name, content string) func(c *synthetic) {
	return func(c *synthetic) { c.Files[name] = []byte(content) }
}

// without removes a member of an object.
func without(o func(c *synthetic) object, name string) func(c *synthetic) {
	return func(c *synthetic) { delete(o(c), name) }
}

func root(c *synthetic) object { return c.Config }
func rope(c *synthetic) object { return c.Text()["rope_parameters"].(object) }
func text(c *synthetic) object { return c.Text() }

// foreign makes the config.json of another tool's checkpoint.
func foreign(config object) func(c *synthetic) {
	return func(c *synthetic) {
		delete(c.Config, "quantization")
		c.Config["quantization_config"] = config
	}
}

// quantize changes both places that say how MLX quantised.
func quantize(change func(q object)) func(c *synthetic) {
	return func(c *synthetic) {
		change(c.Config["quantization"].(object))
		change(c.Config["quantization_config"].(object))
	}
}

// TestRefuseKind goes through what else config.json can show.
func TestRefuseKind(t *testing.T) {
	refuse(t, anySize, []refusal{
		{"dense", setRoot("model_type", "qwen3_5"),
			[]string{"config.json", "dense model", `"qwen3_5"`, "35B-A3B", repository}},
		{"dense text model", set("model_type", "qwen3_5_text"),
			[]string{"config.json", "dense model", "text_config.model_type", repository}},
		{"dense, no experts", without(text, "num_experts"),
			[]string{"config.json", "dense model", "num_experts", repository}},
		{"another family", setRoot("model_type", "qwen3_next"),
			[]string{"config.json", "unsupported architecture", `"qwen3_next"`, `"qwen3_5_moe"`, repository}},
		{"another family's text model", set("model_type", "qwen4_exp_text"),
			[]string{"config.json", "unsupported architecture", `"qwen4_exp_text"`, repository}},
		{"another class", setRoot("architectures", []string{"Qwen3MoeForCausalLM"}),
			[]string{"config.json", "unsupported architecture", "Qwen3MoeForCausalLM", repository}},
		{"no class", without(root, "architectures"),
			[]string{"config.json", "architectures missing", "Qwen3_5MoeForConditionalGeneration"}},
		{"no model_type", without(root, "model_type"),
			[]string{"config.json", "no model_type", repository}},
		{"model_type is no string", setRoot("model_type", 5),
			[]string{"config.json", "model_type 5", repository}},
		{"text-only export", func(c *synthetic) {
			c.Config = c.Text()
			c.Config["architectures"] = []string{"Qwen3_5MoeForCausalLM"}
		}, []string{"config.json", "text-only export", "not an MLX conversion", repository}},
		{"text-only class", setRoot("architectures", []string{"Qwen3_5MoeForCausalLM"}),
			[]string{"config.json", "text-only export", "Qwen3_5MoeForCausalLM", repository}},
		{"no text_config", without(root, "text_config"),
			[]string{"config.json", "no text_config", "not an MLX conversion", repository}},
		{"text_config is no object", setRoot("text_config", []int{1}),
			[]string{"config.json", "no text_config"}},
		{"bfloat16", func(c *synthetic) {
			delete(c.Config, "quantization")
			delete(c.Config, "quantization_config")
		}, []string{"config.json", "unquantized", `"bfloat16"`, repository}},
		{"float16 by torch_dtype", func(c *synthetic) {
			delete(c.Config, "quantization")
			delete(c.Config, "quantization_config")
			delete(c.Text(), "dtype")
			c.Config["torch_dtype"] = "float16"
		}, []string{"config.json", "unquantized", `"float16"`, repository}},
		{"FP8", foreign(object{"quant_method": "fp8", "fmt": "e4m3", "weight_block_size": []int{128, 128}}),
			[]string{"config.json", "FP8", "e4m3", repository}},
		{"FP8 of a larger model", func(c *synthetic) {
			foreign(object{"quant_method": "fp8"})(c)
			c.Text()["hidden_size"] = 3072
		}, []string{"FP8", repository}},
		{"GPTQ", foreign(object{"quant_method": "gptq", "bits": 4}), []string{"config.json", "GPTQ", repository}},
		{"AWQ", foreign(object{"quant_method": "awq", "bits": 4}), []string{"config.json", "AWQ", repository}},
		{"GPTQ by its file alone", func(c *synthetic) {
			delete(c.Config, "quantization")
			delete(c.Config, "quantization_config")
			c.Files["quantize_config.json"] = []byte("{}")
		}, []string{"config.json", "quantize_config.json", "GPTQ or AWQ", repository}},
		{"ModelOpt by its file alone", func(c *synthetic) {
			delete(c.Config, "quantization")
			delete(c.Config, "quantization_config")
			c.Files["hf_quant_config.json"] = []byte("{}")
		}, []string{"config.json", "hf_quant_config.json", "ModelOpt", repository}},
		{"compressed-tensors NVFP4", foreign(object{"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}),
			[]string{"config.json", `"compressed-tensors"`, "nvfp4-pack-quantized", repository}},
		{"int8 in compressed-tensors", foreign(object{"quant_method": "compressed-tensors", "format": "int-quantized"}),
			[]string{"config.json", `"compressed-tensors"`, "int-quantized", repository}},
		{"ModelOpt", foreign(object{"quant_method": "modelopt", "quant_algo": "NVFP4"}),
			[]string{"config.json", `"modelopt"`, "NVFP4", repository}},
		{"int8 of bitsandbytes", foreign(object{"quant_method": "bitsandbytes", "load_in_8bit": true, "load_in_4bit": false}),
			[]string{"config.json", `"bitsandbytes"`, "load_in_8bit true", repository}},
		{"HQQ", foreign(object{"quant_method": "hqq"}), []string{"config.json", `"hqq"`, repository}},
		{"other tool beside MLX's object", setRoot("quantization_config", object{"quant_method": "gptq"}),
			[]string{"config.json", "GPTQ", repository}},
		{"quantization_config of nobody", foreign(object{"bits": 4}),
			[]string{"config.json", "no quantization", repository}},
		{"MLX mxfp4", quantize(func(q object) { q["mode"], q["group_size"] = "mxfp4", 32 }),
			[]string{"config.json", "quantization.mode", "mxfp4", "want affine", repository}},
		{"MLX mxfp8", quantize(func(q object) { q["mode"], q["bits"], q["group_size"] = "mxfp8", 8, 32 }),
			[]string{"config.json", "mxfp8", "want affine", repository}},
		{"MLX nvfp4", quantize(func(q object) { q["mode"], q["group_size"] = "nvfp4", 16 }),
			[]string{"config.json", "nvfp4", "want affine", repository}},
		{"MLX 8-bit", quantize(func(q object) { q["bits"] = 8 }),
			[]string{"config.json", "quantization.bits", "8-bit", "want 4-bit", repository}},
		{"MLX 3-bit", quantize(func(q object) { q["bits"] = 3 }),
			[]string{"config.json", "3-bit", "want 4-bit", repository}},
		{"MLX groups of 32", quantize(func(q object) { q["group_size"] = 32 }),
			[]string{"config.json", "quantization.group_size", "group size 32", "want 64", repository}},
		{"MLX groups of 128", quantize(func(q object) { q["group_size"] = 128 }),
			[]string{"config.json", "group size 128", "want 64", repository}},
		{"mixed 4 and 6 bits", quantize(func(q object) {
			q["language_model.lm_head"] = object{"bits": 6, "group_size": 64}
		}), []string{"config.json", "mixed quantization", "language_model.lm_head", "6-bit", repository}},
		{"mixed, 8 bits with 4-bit overrides", quantize(func(q object) {
			q["bits"] = 8
			q["language_model.model.layers.0.mlp.switch_mlp.up_proj"] = object{"bits": 4, "group_size": 64}
		}), []string{"config.json", "mixed quantization", "switch_mlp.up_proj", repository}},
		{"a matrix left unquantised", quantize(func(q object) { q["language_model.lm_head"] = false }),
			[]string{"config.json", "mixed quantization", "language_model.lm_head", "not quantised"}},
		{"router in 4 bits", quantize(func(q object) {
			q[checkpoint.Router.Name(1)] = object{"bits": 4, "group_size": 64}
		}), []string{"config.json", "layers.1.mlp.gate is 4-bit", "want 8-bit", repository}},
		{"shared expert's gate in groups of 32", quantize(func(q object) {
			q[checkpoint.SharedMix.Name(0)] = object{"bits": 8, "group_size": 32}
		}), []string{"config.json", "layers.0.mlp.shared_expert_gate", "groups of 32", "groups of 64"}},
		{"router in mxfp8", quantize(func(q object) {
			q[checkpoint.Router.Name(1)] = object{"bits": 8, "group_size": 64, "mode": "mxfp8"}
		}), []string{"config.json", "layers.1.mlp.gate", "mxfp8", "affine"}},
		{"router not declared", quantize(func(q object) { delete(q, checkpoint.Router.Name(0)) }),
			[]string{"config.json", "layers.0.mlp.gate is 4-bit", "want 8-bit"}},
		{"router of a layer that is not there", quantize(func(q object) {
			q[checkpoint.Router.Name(2)] = object{"bits": 8, "group_size": 64}
		}), []string{"config.json", "layers.2.mlp.gate", "no matrix"}},
		{"the two differ in size", func(c *synthetic) { c.Config["quantization_config"].(object)["group_size"] = 32 },
			[]string{"config.json", "quantization_config differs from quantization"}},
		{"the two differ in a router", func(c *synthetic) {
			delete(c.Config["quantization_config"].(object), checkpoint.Router.Name(0))
		}, []string{"config.json", "quantization_config differs from quantization"}},
		{"quantization is no object", setRoot("quantization", 4),
			[]string{"config.json", "quantization: 4, want an object"}},
		{"quantization_config is no object", setRoot("quantization_config", "q4"),
			[]string{"config.json", `quantization_config: "q4", want an object`}},
		{"no bits", quantize(func(q object) { delete(q, "bits") }), []string{"config.json", "want bits and group_size"}},
		{"bits are text", quantize(func(q object) { q["bits"] = "4" }), []string{"config.json", `bits: "4", want an integer above 0`}},
		{"zero bits", quantize(func(q object) { q["bits"] = 0 }), []string{"config.json", "bits: 0, want an integer above 0"}},
		{"mode is a number", quantize(func(q object) { q["mode"] = 4 }), []string{"config.json", "mode: 4, want a string"}},
		{"unknown field", quantize(func(q object) { q["scheme"] = 1 }), []string{"config.json", "scheme", "want an object"}},
		{"unknown field of a router", quantize(func(q object) {
			q[checkpoint.Router.Name(0)] = object{"bits": 8, "group_size": 64, "zero": 1}
		}), []string{"config.json", "mlp.gate", `unknown field "zero"`}},
	})
}

// TestRefuseField goes through the fields that have one value at any size, and
// through what the kernels need of a size.
func TestRefuseField(t *testing.T) {
	var rows []refusal
	for _, f := range []struct {
		name  string
		value any
		words string
	}{
		{"hidden_act", "gelu", `"gelu", want "silu"`},
		{"attention_bias", true, "true, want false"},
		{"attn_output_gate", false, "false, want true"},
		{"norm_topk_prob", false, "false, want true"},
		{"output_gate_type", "sigmoid", `"sigmoid", want "swish"`},
		{"rms_norm_eps", 1e-5, "want 1e-06"},
		{"rms_norm_eps", "1e-06", "want 1e-06"},
		{"tie_word_embeddings", true, "true, want false"},
		{"mlp_only_layers", []int{0}, "[0], want []"},
		{"decoder_sparse_step", 2, "2, want 1"},
		{"rope_scaling", object{"type": "yarn"}, "want null"},
		{"rope_parameters", nil, "want an object"},
		{"rope_theta", 5, "5, but 10000 in rope_parameters"},
		{"partial_rotary_factor", 0.5, "0.5, but 0.25 in rope_parameters"},
		{"layer_types", []string{"linear_attention"}, "1 layers, want 2"},
		{"layer_types", []string{"linear_attention", "linear_attention"}, `layer 1 is "linear_attention", want "full_attention"`},
		{"layer_types", []string{"linear_attention", "full_attention", "full_attention"}, "3 layers, want 2"},
		{"full_attention_interval", 4, `layer_types: layer 1 is "full_attention"`},
		{"full_attention_interval", 0, "0, want an integer from 1"},
		{"num_hidden_layers", 0, "0, want an integer from 1"},
		{"num_hidden_layers", -40, "-40, want an integer from 1"},
		{"num_hidden_layers", "40", `"40", want an integer`},
		{"num_hidden_layers", 40.5, "40.5, want an integer"},
		{"num_hidden_layers", 1 << 40, "1099511627776, want an integer from 1 to 1024"},
		{"num_hidden_layers", nil, "null, want an integer"},
		{"hidden_size", 96, "96, want a multiple of 64"},
		{"hidden_size", 1 << 20, "want an integer from 64 to 65536"},
		{"moe_intermediate_size", 80, "80, want a multiple of 64"},
		{"shared_expert_intermediate_size", 100, "100, want a multiple of 64"},
		{"num_attention_heads", 3, "num_attention_heads × head_dim: 96, want a multiple of 64"},
		{"num_key_value_heads", 3, "num_attention_heads: 2, want a multiple of num_key_value_heads 3"},
		{"linear_num_key_heads", 3, "linear_num_value_heads: 2, want a multiple of linear_num_key_heads 3"},
		{"linear_num_value_heads", 3, "linear_num_value_heads × linear_value_head_dim: 96, want a multiple of 64"},
		{"linear_key_head_dim", 33, "33, want an even number"},
		{"linear_conv_kernel_dim", 3, "3, want 4"},
		{"num_experts_per_tok", 5, "5, want at most num_experts 4"},
		{"num_experts", 0, "0, want an integer from 1"},
		{"vocab_size", 0, "0, want an integer from 1"},
		{"max_position_embeddings", 0, "0, want an integer from 1"},
		{"eos_token_id", 32, "32, want a token below vocab_size 32"},
		{"eos_token_id", -1, "-1, want a token"},
		{"eos_token_id", []any{1, "2"}, `"2", want a token`},
	} {
		rows = append(rows, refusal{f.name + " " + f.words, set(f.name, f.value), []string{"config.json", f.name, f.words}})
	}
	for _, f := range []struct {
		name  string
		value any
		words string
	}{
		{"rope_type", "yarn", `"yarn", want "default"`},
		{"rope_theta", 0, "0, want a number above 0"},
		{"rope_theta", "1e7", `"1e7", want a number`},
		{"rope_theta", 1e300, "want a number above 0"},
		{"partial_rotary_factor", 1.5, "1.5, want a number above 0, at most 1"},
		{"partial_rotary_factor", 0.26, "no whole number"},
		{"mrope_interleaved", false, "false, want true"},
		{"mrope_section", []int{2, 2}, "want three numbers with the sum 4"},
		{"mrope_section", []int{2, 2, 2}, "want three numbers with the sum 4"},
		{"mrope_section", []int{8, -2, -2}, "want three numbers with the sum 4"},
	} {
		rows = append(rows, refusal{f.name + " " + f.words, setRope(f.name, f.value),
			[]string{"config.json", "rope_parameters." + f.name, f.words}})
	}
	for _, name := range []string{"hidden_act", "attention_bias", "rms_norm_eps", "hidden_size", "num_hidden_layers", "vocab_size"} {
		rows = append(rows, refusal{name + " missing", without(text, name), []string{"config.json", "text_config." + name, "missing"}})
	}
	for _, name := range []string{"rope_type", "rope_theta", "partial_rotary_factor", "mrope_interleaved", "mrope_section"} {
		rows = append(rows, refusal{name + " missing", without(rope, name),
			[]string{"config.json", "rope_parameters." + name, "missing"}})
	}
	rows = append(rows,
		refusal{"tied at the top", setRoot("tie_word_embeddings", true), []string{"config.json: tie_word_embeddings: true, want false"}},
		refusal{"tied nowhere", func(c *synthetic) {
			delete(c.Config, "tie_word_embeddings")
			delete(c.Text(), "tie_word_embeddings")
		}, []string{"config.json", "tie_word_embeddings is missing"}},
		refusal{"odd rotated part", func(c *synthetic) {
			setRope("partial_rotary_factor", 3.0/32)(c)
			setRope("mrope_section", []int{1, 0, 0})(c)
		}, []string{"config.json", "the rotated part of head_dim: 3, want an even number"}},
		refusal{"stop token beyond the vocabulary", setRoot("eos_token_id", []int{5, 1 << 40}),
			[]string{"config.json", "eos_token_id: 1099511627776, want a token below vocab_size 32"}},
	)
	refuse(t, anySize, rows)
}

// TestRefuseGeneration goes through generation_config.json.
func TestRefuseGeneration(t *testing.T) {
	var rows []refusal
	for _, f := range []struct {
		field string
		value any
		want  string
	}{
		{"do_sample", 1, "true or false"},
		{"temperature", -0.1, "from 0 to 2"},
		{"temperature", 2.5, "from 0 to 2"},
		{"temperature", "1", "from 0 to 2"},
		{"top_k", -1, "from 0 to 32"},
		{"top_k", 33, "from 0 to 32"},
		{"top_k", 1.5, "from 0 to 32"},
		{"top_p", 0, "above 0, at most 1"},
		{"top_p", 1.01, "above 0, at most 1"},
		{"eos_token_id", 32, "a token below vocab_size 32"},
		{"eos_token_id", object{}, "a token below vocab_size 32"},
	} {
		rows = append(rows, refusal{f.field + " " + f.want, func(c *synthetic) { c.Generation[f.field] = f.value },
			[]string{"generation_config.json", f.field, f.want}})
	}
	rows = append(rows,
		refusal{"an array", file("generation_config.json", "[]"), []string{"generation_config.json", "want a JSON object"}},
		refusal{"cut", file("generation_config.json", `{"top_k": 2`), []string{"generation_config.json", "byte 11: the end"}},
		refusal{"empty", file("generation_config.json", ""), []string{"generation_config.json", "empty"}},
	)
	refuse(t, anySize, rows)
}

// TestRefuseSize names the first field that differs from the published size.
func TestRefuseSize(t *testing.T) {
	larger := checkpoint.Published
	larger.Layers, larger.Hidden, larger.Experts = 48, 3072, 512
	wider := checkpoint.Published
	wider.Hidden = 4096
	other := checkpoint.Published
	other.RopeTheta = 10_000
	rotary := checkpoint.Published
	rotary.RotaryDims = 128
	for _, tt := range []struct {
		name   string
		config checkpoint.Config
		exact  []checkpoint.Config
		words  []string
	}{
		{"122B", larger, nil, []string{"text_config.num_hidden_layers is 48, want 40", "Qwen3.6-35B-A3B", "--any-size", repository}},
		{"wider", wider, nil, []string{"text_config.hidden_size is 4096, want 2048", "--any-size"}},
		{"other rope base", other, nil, []string{"rope_theta is 10000, want 1e+07", "--any-size"}},
		{"other rotated part", rotary, nil, []string{"partial_rotary_factor turns 128 dimensions", "want 64", "--any-size"}},
		{"published, but another is wanted", checkpoint.Published, []checkpoint.Config{checkpointtest.Small},
			[]string{"num_hidden_layers is 40, want 2", "--any-size"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := checkpointtest.New(checkpointtest.Small, 1)
			c.Config = checkpointtest.New(tt.config, 1).Config
			_, err := checkpoint.Open(c.Source(), checkpoint.Options{Exact: tt.exact})
			if err == nil {
				t.Fatal("opened, want a refusal")
			}
			for _, w := range append(tt.words, "config.json") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want the words %q", err, w)
				}
			}
		})
	}
}
