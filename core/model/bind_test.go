package model

import (
	"reflect"
	"testing"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/tensor"
)

func openTiny(t *testing.T) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(checkpoint.Dir("../conform/testdata/tiny"), checkpoint.Options{AnySize: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestBindLayers gives each layer the weights of its kind and of no other.
func TestBindLayers(t *testing.T) {
	b := Bind(openTiny(t), 0)
	if len(b.Layers) != 8 {
		t.Fatalf("%d layers, want 8", len(b.Layers))
	}
	for i, l := range b.Layers {
		attends := i == 3 || i == 7
		if (l.Attention != nil) != attends || (l.Delta != nil) == attends {
			t.Errorf("layer %d: attention %v, delta net %v, want attention %v", i, l.Attention != nil, l.Delta != nil, attends)
		}
	}
}

// TestBindNames compares roles and sizes with the table of core/model/SPEC.md
// for the tiny fixture.
func TestBindNames(t *testing.T) {
	b := Bind(openTiny(t), 0)
	delta, attention, moe := b.Layers[5].Delta, b.Layers[3].Attention, b.Layers[3].MoE
	for _, tt := range []struct {
		name             string
		got              backend.Quantised
		experts, out, in int
		bits             int
	}{
		{"model.embed_tokens", b.Embed, 1, 720, 128, 4},
		{"lm_head", b.Head, 1, 720, 128, 4},
		{"model.layers.5.linear_attn.in_proj_qkv", delta.QKV, 1, 512, 128, 4},
		{"model.layers.5.linear_attn.in_proj_z", delta.Z, 1, 256, 128, 4},
		{"model.layers.5.linear_attn.in_proj_b", delta.B, 1, 4, 128, 4},
		{"model.layers.5.linear_attn.in_proj_a", delta.A, 1, 4, 128, 4},
		{"model.layers.5.linear_attn.out_proj", delta.Out, 1, 128, 256, 4},
		{"model.layers.3.self_attn.q_proj", attention.Q, 1, 1024, 128, 4},
		{"model.layers.3.self_attn.k_proj", attention.K, 1, 128, 128, 4},
		{"model.layers.3.self_attn.v_proj", attention.V, 1, 128, 128, 4},
		{"model.layers.3.self_attn.o_proj", attention.Out, 1, 128, 512, 4},
		{"model.layers.3.mlp.gate", moe.Router, 1, 16, 128, 8},
		{"model.layers.3.mlp.switch_mlp.gate_proj", moe.Gate, 16, 64, 128, 4},
		{"model.layers.3.mlp.switch_mlp.up_proj", moe.Up, 16, 64, 128, 4},
		{"model.layers.3.mlp.switch_mlp.down_proj", moe.Down, 16, 128, 64, 4},
		{"model.layers.3.mlp.shared_expert_gate", moe.SharedMix, 1, 1, 128, 8},
		{"model.layers.3.mlp.shared_expert.gate_proj", moe.SharedGate, 1, 64, 128, 4},
		{"model.layers.3.mlp.shared_expert.up_proj", moe.SharedUp, 1, 64, 128, 4},
		{"model.layers.3.mlp.shared_expert.down_proj", moe.SharedDown, 1, 128, 64, 4},
	} {
		q := tt.got
		name := "language_model." + tt.name
		if q.Weight.Name != name+".weight" || q.Scales.Name != name+".scales" || q.Biases.Name != name+".biases" {
			t.Errorf("%s, %s, %s, want those of %s", q.Weight.Name, q.Scales.Name, q.Biases.Name, name)
		}
		if q.Experts != tt.experts || q.Out != tt.out || q.In != tt.in || q.Bits != tt.bits {
			t.Errorf("%s: %d of %d x %d in %d bits, want %d of %d x %d in %d",
				tt.name, q.Experts, q.Out, q.In, q.Bits, tt.experts, tt.out, tt.in, tt.bits)
		}
	}
	for name, got := range map[string]checkpoint.Weight{
		"model.norm.weight":                              b.Norm,
		"model.layers.5.input_layernorm.weight":          b.Layers[5].InputNorm,
		"model.layers.5.post_attention_layernorm.weight": b.Layers[5].PostNorm,
		"model.layers.5.linear_attn.conv1d.weight":       delta.Conv,
		"model.layers.5.linear_attn.A_log":               delta.ALog,
		"model.layers.5.linear_attn.dt_bias":             delta.DT,
		"model.layers.5.linear_attn.norm.weight":         delta.Norm,
		"model.layers.3.self_attn.q_norm.weight":         attention.QNorm,
		"model.layers.3.self_attn.k_norm.weight":         attention.KNorm,
	} {
		if got.Name != "language_model."+name {
			t.Errorf("%s, want language_model.%s", got.Name, name)
		}
	}
}

// TestBindEverything binds each weight of the checkpoint once, and the sizes of
// matrices agree with their tensors.
func TestBindEverything(t *testing.T) {
	c := openTiny(t)
	b := Bind(c, 0)
	bound := map[string]int{}
	each(reflect.ValueOf(b).Elem(), func(w checkpoint.Weight) { bound[w.Name]++ })
	var bytes int64
	for name, times := range bound {
		w, _ := c.Weight(name)
		bytes += w.Size
		if times != 1 {
			t.Errorf("%s is bound %d times, want once", name, times)
		}
	}
	if bytes != c.Bytes() {
		t.Errorf("%d bytes bound, want %d", bytes, c.Bytes())
	}
	each(reflect.ValueOf(b).Elem(), func(q backend.Quantised) {
		codes := int64(q.Experts) * int64(q.Out) * int64(q.In) * int64(q.Bits) / 8
		scales := int64(q.Experts) * int64(q.Out) * int64(q.In) / 64 * int64(tensor.BF16.Size())
		if q.Weight.Size != codes || q.Scales.Size != scales || q.Biases.Size != scales {
			t.Errorf("%s: %d, %d and %d bytes, want %d, %d and %d",
				q.Weight.Name, q.Weight.Size, q.Scales.Size, q.Biases.Size, codes, scales, scales)
		}
	})
}

// each visits every value of type T in v.
func each[T any](v reflect.Value, visit func(T)) {
	if x, ok := v.Interface().(T); ok {
		visit(x)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			each(v.Elem(), visit)
		}
	case reflect.Struct:
		if _, ok := v.Interface().(checkpoint.Weight); ok {
			return
		}
		for i := range v.NumField() {
			each(v.Field(i), visit)
		}
	case reflect.Slice:
		for i := range v.Len() {
			each(v.Index(i), visit)
		}
	}
}
