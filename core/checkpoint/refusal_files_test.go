package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"calla/core/checkpoint"
	"calla/core/checkpoint/checkpointtest"
)

const (
	first  = "model-00001-of-00002.safetensors"
	second = "model-00002-of-00002.safetensors"
	index  = "model.safetensors.index.json"
	html   = "<!DOCTYPE html>\n<html><head><title>Log in</title></head></html>"
	lfs    = "version https://git-lfs.github.com/spec/v1\noid sha256:09f3e6\nsize 5288196018\n"
)

// only leaves nothing but the given files.
func only(files map[string]string) func(c *synthetic) {
	return func(c *synthetic) {
		for name := range c.Contents() {
			c.Files[name] = nil
		}
		for name, content := range files {
			c.Files[name] = []byte(content)
		}
	}
}

func gone(name string) func(c *synthetic) {
	return func(c *synthetic) { c.Files[name] = nil }
}

// edit changes the finished bytes of a file.
func edit(name string, change func(b []byte) []byte) func(c *synthetic) {
	return func(c *synthetic) { c.Files[name] = change(c.Contents()[name]) }
}

// reheader changes the header of the first shard as text.
func reheader(old, new string) func(c *synthetic) {
	return edit(first, func(b []byte) []byte {
		n := binary.LittleEndian.Uint64(b)
		header := string(b[8 : 8+n])
		if !strings.Contains(header, old) {
			panic("no " + old + " in " + header)
		}
		return append(checkpointtest.Frame([]byte(strings.Replace(header, old, new, 1))), b[8+n:]...)
	})
}

// extra adds a tensor to the first shard.
func extra(name, dtype string, shape ...int) func(c *synthetic) {
	return func(c *synthetic) {
		c.Shards[0].Tensors = append(c.Shards[0].Tensors, &checkpointtest.Tensor{Name: name, DType: dtype, Shape: shape})
	}
}

func embed(c *synthetic) *checkpointtest.Tensor {
	return c.Tensor("language_model.model.embed_tokens.weight")
}

// TestRefuseFiles goes through files that are missing, cut, or something else.
func TestRefuseFiles(t *testing.T) {
	refuse(t, anySize, []refusal{
		{"an empty folder", only(nil), []string{"config.json", "an empty folder", repository}},
		{"no config.json", gone("config.json"), []string{"no config.json", repository}},
		{"GGUF", only(map[string]string{"qwen3.6-35b-a3b-q4_k_m.gguf": "GGUF\x03\x00\x00\x00"}),
			[]string{"no config.json", "GGUF", repository}},
		{"GGUF beside config.json", func(c *synthetic) {
			config := string(c.Contents()["config.json"])
			only(map[string]string{"config.json": config, "model.Q4.GGUF": "GGUF"})(c)
		}, []string{"no safetensors files", "GGUF", repository}},
		{"GGUF named .safetensors", file(first, "GGUF\x03\x00\x00\x00\x00\x00\x00\x00"), []string{first, "a GGUF file", repository}},
		{"PyTorch", func(c *synthetic) {
			config := string(c.Contents()["config.json"])
			only(map[string]string{"config.json": config, "pytorch_model.bin": "PK\x03\x04"})(c)
		}, []string{"no safetensors files", "PyTorch", repository}},
		{"AWQ without config.json", only(map[string]string{"quantize_config.json": "{}"}),
			[]string{"no config.json", "GPTQ or AWQ", repository}},
		{"ModelOpt without config.json", only(map[string]string{"hf_quant_config.json": "{}"}),
			[]string{"no config.json", "ModelOpt", repository}},
		{"safetensors of another name", func(c *synthetic) {
			config := string(c.Contents()["config.json"])
			only(map[string]string{"config.json": config, "weights.00.safetensors": "x"})(c)
		}, []string{"no model*.safetensors", repository}},
		{"an HTML page named config.json", file("config.json", html), []string{"config.json", "an HTML page", "want JSON"}},
		{"a git-lfs pointer named config.json", file("config.json", lfs), []string{"config.json", "git-lfs pointer", "want JSON"}},
		{"an empty config.json", file("config.json", ""), []string{"config.json: empty", "incomplete download"}},
		{"a cut config.json", edit("config.json", func(b []byte) []byte { return b[:len(b)/2] }), []string{"config.json: byte "}},
		{"config.json with more behind", edit("config.json", func(b []byte) []byte { return append(b, '}') }),
			[]string{"config.json: byte ", "after the end"}},
		{"config.json is a list", file("config.json", "[]"), []string{"config.json: [], want a JSON object"}},
		{"config.json has a name twice", edit("config.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`{`), []byte(`{"model_type":"qwen3_5",`), 1)
		}), []string{"config.json", `"model_type" is there twice`}},
		{"config.json in Latin-1", edit("config.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`{`), []byte("{\"\xe9\":1,"), 1)
		}), []string{"config.json: byte 2", "not UTF-8"}},
		{"config.json is deep", file("config.json", strings.Repeat(`{"a":`, 40)), []string{"config.json", "deeper than 32 levels"}},
		{"config.json is huge", file("config.json", strings.Repeat(" ", 17<<20)), []string{"config.json", "17825792 bytes, want at most"}},

		{"no index", gone(index), []string{index + " is missing", "incomplete download"}},
		{"an HTML page for the index", file(index, html), []string{index, "an HTML page", "want JSON"}},
		{"an index without weights", file(index, `{"metadata":{}}`), []string{index, "no weight_map"}},
		{"an index of nothing", file(index, `{"weight_map":{}}`), []string{index, "an empty weight_map"}},
		{"an index that leads out of the folder", file(index, `{"weight_map":{"a":"../../model.safetensors"}}`),
			[]string{index, `"../../model.safetensors"`, "want the name"}},
		{"an index with numbers", file(index, `{"weight_map":{"a":1}}`), []string{index, `"a" is in 1`}},
		{"an index of PyTorch files", file(index, `{"weight_map":{"a":"pytorch_model.bin"}}`), []string{index, "pytorch_model.bin"}},
		{"a shard is missing", gone(second), []string{second + " is missing", "shard 2 of 2", "incomplete download"}},
		{"a shard that the index lacks", file("model-00003-of-00003.safetensors", ""),
			[]string{"model-00003-of-00003.safetensors", "not in " + index}},
		{"two checkpoints", file("model.safetensors", ""), []string{"model.safetensors", "not in " + index}},

		{"an empty shard", file(second, ""), []string{second, "0 bytes", "incomplete download"}},
		{"a shard of four bytes", file(second, "\x10\x00\x00\x00"), []string{second, "4 bytes", "incomplete download"}},
		{"a shard cut in its header", edit(second, func(b []byte) []byte { return b[:100] }),
			[]string{second, "header of", "in a file of 100", "incomplete download"}},
		{"a shard cut by one byte", edit(second, func(b []byte) []byte { return b[:len(b)-1] }),
			[]string{second, "the header asks for", "incomplete download"}},
		{"a shard with a byte more", edit(second, func(b []byte) []byte { return append(b, 0) }),
			[]string{second, "1 that no tensor has"}},
		{"an HTML page for a shard", file(second, html), []string{second, "an HTML page", "want a safetensors file", repository}},
		{"a git-lfs pointer for a shard", file(second, lfs), []string{second, "git-lfs pointer", "want a safetensors file"}},
		{"a zip for a shard", file(second, "PK\x03\x04\x14\x00\x08\x08"), []string{second, "zip archive", "PyTorch"}},
		{"noise for a shard", file(second, "\xff\xff\xff\xff\xff\xff\xff\xff..."), []string{second, "a header of 18446744073709551615 bytes", "at most 100000000"}},
		{"a header over 100 MB", file(second, "\x01\xe1\xf5\x05\x00\x00\x00\x00"), []string{second, "a header of 100000001 bytes", "at most 100000000"}},
		{"a header of nothing", file(second, "\x00\x00\x00\x00\x00\x00\x00\x00"), []string{second, "no JSON object"}},
	})
}

// TestRefuseTensors goes through tensors and their places.
func TestRefuseTensors(t *testing.T) {
	const norm = "language_model.model.norm.weight"
	refuse(t, anySize, []refusal{
		{"a missing tensor", func(c *synthetic) { c.Remove(norm) },
			[]string{"tensor " + norm + " is missing", "want BF16 [64]"}},
		{"missing scales", func(c *synthetic) { c.Remove("language_model.lm_head.scales") },
			[]string{"tensor language_model.lm_head.scales is missing", "BF16 [32 1]"}},
		{"a tensor too many", extra("language_model.model.layers.2.mlp.gate.weight", "U32", 4, 16),
			[]string{first, "layers.2.mlp.gate.weight", "no part of the model"}},
		{"a bias", extra("language_model.model.layers.1.self_attn.q_proj.bias", "BF16", 128),
			[]string{first, "q_proj.bias", "no part of the model"}},
		{"names of the original", func(c *synthetic) { c.Tensor(norm).Name = "model.language_model.norm.weight" },
			[]string{`"model.language_model.norm.weight"`, "no part of the model"}},
		{"a name that is nearly right", func(c *synthetic) { c.Tensor(norm).Name += "\u200b" },
			[]string{`norm.weight\u200b"`, "no part of the model"}},
		{"another shape", func(c *synthetic) { c.Tensor(norm).Shape = []int{128} },
			[]string{"tensor " + norm, "shape [128], want [64]"}},
		{"another rank", func(c *synthetic) { c.Tensor(norm).Shape = []int{64, 1} },
			[]string{"tensor " + norm, "shape [64 1], want [64]"}},
		{"turned around", func(c *synthetic) { embed(c).Shape = []int{8, 32} },
			[]string{"embed_tokens.weight", "shape [8 32], want [32 8]"}},
		{"the original's conv1d", func(c *synthetic) {
			c.Tensor("language_model.model.layers.0.linear_attn.conv1d.weight").Shape = []int{128, 1, 4}
		}, []string{"conv1d.weight", "shape [128 1 4], want [128 4 1]"}},
		{"a router in 4 bits", func(c *synthetic) {
			c.Tensor("language_model.model.layers.0.mlp.gate.weight").Shape = []int{4, 8}
		}, []string{"layers.0.mlp.gate.weight", "shape [4 8], want [4 16]"}},
		{"float16", func(c *synthetic) { c.Tensor(norm).DType = "F16" },
			[]string{"tensor " + norm, "element type F16, want [BF16]"}},
		{"scales of mxfp4", func(c *synthetic) { c.Tensor("language_model.lm_head.scales").DType = "U8" },
			[]string{"language_model.lm_head.scales", "element type U8, want [BF16]"}},
		{"an unquantised matrix", func(c *synthetic) { embed(c).DType = "F32" },
			[]string{"embed_tokens.weight", "element type F32, want [U32]"}},
		{"dt_bias in float32", func(c *synthetic) {
			c.Tensor("language_model.model.layers.0.linear_attn.dt_bias").DType = "F32"
		}, []string{"dt_bias", "element type F32, want [BF16]"}},

		{"a tensor in both shards", func(c *synthetic) {
			c.Files[index] = c.Contents()[index]
			c.Shards[1].Tensors = append(c.Shards[1].Tensors, c.Shards[0].Tensors[0])
		}, []string{second, "is in " + first + " too"}},
		{"a skipped tensor in both shards", func(c *synthetic) {
			extra("vision_tower.a", "BF16", 2)(c)
			c.Shards[1].Tensors = append(c.Shards[1].Tensors, &checkpointtest.Tensor{Name: "vision_tower.a", DType: "BF16", Shape: []int{2}})
		}, []string{first, `"vision_tower.a" is in ` + second, index}},
		{"the index has another shard", edit(index, func(b []byte) []byte {
			i := bytes.Index(b, []byte(first))
			return slices.Concat(b[:i], []byte(second), b[i+len(first):])
		}), []string{first, "is in " + second, index}},
		{"the index lacks a tensor", edit(index, func(b []byte) []byte {
			return bytes.Replace(b, []byte(norm), []byte("x"), 1)
		}), []string{norm, "is not in " + index}},
		{"the index has one more", edit(index, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`{"language`), []byte(`{"vision_tower.b":"`+first+`","language`), 1)
		}), []string{first, `"vision_tower.b" is missing`, index}},
		{"the index has a name twice", edit(index, func(b []byte) []byte {
			return bytes.Replace(b, []byte(`{"language`), []byte(`{"`+norm+`":"`+first+`","language`), 1)
		}), []string{index, norm, "is there twice"}},

		{"a header with a name twice", reheader(`{"__meta`, `{"__metadata__":{},"__meta`), []string{first, "header", "__metadata__ a second time"}},
		{"a header cut", edit(first, func(b []byte) []byte { b[0]--; return b }), []string{first, "header"}},
		{"overlapping tensors", overlap, []string{first, "overlap", "bytes 0 to"}},
	})
}

// overlap gives the second tensor of a shard the place of the first.
func overlap(c *synthetic) {
	s := c.Shards[0]
	a, b := s.Tensors[0], s.Tensors[1]
	b.DType, b.Shape = a.DType, a.Shape
	body := s.Encode()
	var header map[string]json.RawMessage
	if err := json.Unmarshal(s.Header(), &header); err != nil {
		panic(err)
	}
	n := len(s.Header())
	header[b.Name] = header[a.Name]
	changed, err := json.Marshal(header)
	if err != nil {
		panic(err)
	}
	c.Files[s.Name] = append(checkpointtest.Frame(changed), body[8+n:]...)
}

// TestSkips accepts what a text engine leaves out, and what may vary.
func TestSkips(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *synthetic)
	}{
		{"nothing", func(c *synthetic) {}},
		{"a vision tower", extra("vision_tower.blocks.0.attn.qkv.weight", "F32", 3, 2)},
		{"the original's vision tower", extra("model.visual.patch_embed.proj.bias", "F16", 3)},
		{"a prediction head", extra("language_model.mtp.layers.0.mlp.gate.weight", "I64", 3)},
		{"an empty tensor", extra("vision_tower.none", "BF16", 0, 7)},
		{"a scalar", extra("vision_tower.scalar", "BF16")},
		{"A_log and the gated norm in float32", func(c *synthetic) {
			c.Tensor("language_model.model.layers.0.linear_attn.A_log").DType = "F32"
			c.Tensor("language_model.model.layers.0.linear_attn.norm.weight").DType = "F32"
		}},
		{"one file without an index", func(c *synthetic) {
			one := checkpointtest.New(checkpointtest.Small, 1)
			c.Shards, c.NoIndex = one.Shards, true
		}},
		{"one file with an index", func(c *synthetic) { c.Shards = checkpointtest.New(checkpointtest.Small, 1).Shards }},
		{"a padded header", edit(first, func(b []byte) []byte {
			n := binary.LittleEndian.Uint64(b)
			return append(checkpointtest.Frame([]byte(string(b[8:8+n])+"       ")), b[8+n:]...)
		})},
		{"no quantization_config", without(root, "quantization_config")},
		{"no mode", quantize(func(q object) { delete(q, "mode") })},
		{"mode in one place only", func(c *synthetic) { delete(c.Config["quantization"].(object), "mode") }},
		{"an entry of the prediction head", quantize(func(q object) {
			q["language_model.mtp.layers.0.mlp.gate"] = object{"bits": 8, "group_size": 64}
		})},
		{"fields that have a default", func(c *synthetic) {
			for _, name := range []string{"attn_output_gate", "layer_types"} {
				delete(c.Text(), name)
			}
			c.Text()["norm_topk_prob"] = true
			c.Text()["output_gate_type"] = "swish"
			c.Text()["mlp_only_layers"] = []int{}
		}},
		{"tied embeddings denied at the top only", without(text, "tie_word_embeddings")},
		{"an older rope type", func(c *synthetic) {
			delete(rope(c), "rope_type")
			rope(c)["type"] = "default"
		}},
		{"other files", func(c *synthetic) {
			c.Files["README.md"] = []byte("hello")
			c.Files["model.gguf"] = []byte("GGUF")
			c.Files["adapters.safetensors"] = []byte("?")
		}},
		{"no generation_config.json", func(c *synthetic) { c.Generation = nil }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := checkpointtest.New(checkpointtest.Small, 2)
			tt.change(c)
			got, err := checkpoint.Open(c.Source(), anySize)
			if err != nil {
				t.Fatal(err)
			}
			defer got.Close()
			if got.Config() != checkpointtest.Small {
				t.Errorf("config %+v, want %+v", got.Config(), checkpointtest.Small)
			}
			if _, ok := got.Weight("vision_tower.none"); ok {
				t.Error("a skipped tensor became a weight")
			}
		})
	}
}
