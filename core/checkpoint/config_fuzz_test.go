package checkpoint

import "testing"

// oneLayer is a config.json that is accepted, short so that a fuzzer soon gets
// through it.
const oneLayer = `{"model_type":"qwen3_5_moe","architectures":["Qwen3_5MoeForConditionalGeneration"],"quantization":{"bits":4,"group_size":64,
"language_model.model.layers.0.mlp.gate":{"bits":8,"group_size":64},"language_model.model.layers.0.mlp.shared_expert_gate":{"bits":8,"group_size":64}},
"text_config":{"model_type":"qwen3_5_moe_text","num_hidden_layers":1,"hidden_size":64,"vocab_size":9,"max_position_embeddings":9,
"num_attention_heads":2,"num_key_value_heads":1,"head_dim":32,"linear_num_key_heads":1,"linear_num_value_heads":2,"linear_key_head_dim":32,
"linear_value_head_dim":32,"linear_conv_kernel_dim":4,"num_experts":2,"num_experts_per_tok":1,"moe_intermediate_size":64,
"shared_expert_intermediate_size":64,"hidden_act":"silu","attention_bias":false,"rms_norm_eps":1e-6,"tie_word_embeddings":false,"eos_token_id":[7,8],
"rope_parameters":{"rope_type":"default","rope_theta":1e4,"partial_rotary_factor":0.25,"mrope_interleaved":true,"mrope_section":[2,1,1]}}}`

// FuzzConfig reads any config.json and generation_config.json: what is accepted
// has dimensions that the kernels can run, and numbers in their ranges. Run it
// with -fuzzminimizetime 10x: left alone, the fuzzer shortens each text for a
// minute.
func FuzzConfig(f *testing.F) {
	f.Add([]byte(oneLayer), []byte(`{"do_sample":true,"temperature":0.7,"top_k":5,"top_p":0.9,"eos_token_id":3}`))
	f.Add([]byte(`{"model_type":"qwen3_5_moe","text_config":{}}`), []byte(`{"eos_token_id":[1,2]}`))
	f.Fuzz(func(t *testing.T, config, generation []byte) {
		c := &Checkpoint{src: Memory("fuzz", map[string][]byte{configFile: config, generationFile: generation})}
		if err := c.readConfig(nil, Options{AnySize: true}); err != nil {
			return
		}
		d := c.config
		if d.Hidden%64 != 0 || d.Heads%d.KVHeads != 0 || d.RotaryDims%2 != 0 || d.RotaryDims > d.HeadDim ||
			d.ExpertsPerToken > d.Experts || d.DeltaValueHeads%d.DeltaKeyHeads != 0 {
			t.Errorf("accepted %+v", d)
		}
		for tensor := range d.Tensors() {
			if n, ok := tensor.Shape.Elements(); !ok || n == 0 || n > 1<<45 {
				t.Fatalf("%s: %v", tensor.Name, tensor.Shape)
			}
		}
		if g := c.generation; g.Temperature < 0 || g.TopP <= 0 || g.TopP > 1 || g.TopK < 0 {
			t.Errorf("accepted %+v", g)
		}
		for _, stop := range c.stop {
			if stop < 0 || int(stop) >= d.Vocab {
				t.Errorf("stop token %d of %d", stop, d.Vocab)
			}
		}
	})
}

// TestOneLayer keeps the fuzzer's seed accepted.
func TestOneLayer(t *testing.T) {
	c := &Checkpoint{src: Memory("seed", map[string][]byte{configFile: []byte(oneLayer)})}
	if err := c.readConfig(nil, Options{AnySize: true}); err != nil {
		t.Error(err)
	}
}
