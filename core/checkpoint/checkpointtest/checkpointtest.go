// Package checkpointtest makes checkpoints of any size for tests, in the layout
// that MLX writes: shards with an index, header keys sorted, data in another
// order, headers without padding.
//
// A Checkpoint is a description that a test may change before it is written, so
// that a refusal can be tested by the one thing that is wrong. Weights are zero
// unless a test sets them. On disk zeros take no space, so the published size
// can be written anywhere.
package checkpointtest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"calla/core/checkpoint"
	"calla/core/tensor"
)

// Small is the smallest configuration with every kind of layer.
var Small = checkpoint.Config{
	Layers:                2,
	Hidden:                64,
	Vocab:                 32,
	MaxPositions:          256,
	FullAttentionInterval: 2,
	Heads:                 2,
	KVHeads:               1,
	HeadDim:               32,
	RotaryDims:            8,
	RopeTheta:             10_000,
	DeltaKeyHeads:         1,
	DeltaValueHeads:       2,
	DeltaKeyDim:           32,
	DeltaValueDim:         32,
	ConvTaps:              4,
	Experts:               4,
	ExpertsPerToken:       2,
	ExpertDim:             64,
	SharedExpertDim:       64,
	NormEps:               1e-6,
}

// Checkpoint is a checkpoint that is not written yet.
type Checkpoint struct {
	Config     map[string]any // config.json
	Generation map[string]any // generation_config.json; nil: no such file
	Shards     []*Shard
	// NoIndex leaves out the index, as a checkpoint of one file may.
	NoIndex bool
	// Files are further files; they win over those made from the fields above.
	// A nil value leaves a file out.
	Files map[string][]byte
}

// Shard is one safetensors file. Its tensors' bytes lie in the order of the
// slice.
type Shard struct {
	Name    string
	Tensors []*Tensor
	Pad     int // spaces after the header
}

// Tensor is one tensor of a shard.
type Tensor struct {
	Name, DType string
	Shape       []int
	Data        []byte // nil: zeros
}

// New describes a valid checkpoint in that many shards of about equal size.
func New(c checkpoint.Config, shards int) *Checkpoint {
	out := &Checkpoint{
		Config: config(c),
		Generation: map[string]any{
			"do_sample": true, "eos_token_id": []int{c.Vocab - 1, c.Vocab - 2},
			"temperature": 1.0, "top_k": 20, "top_p": 0.95,
		},
		Files: map[string][]byte{},
	}
	var total int64
	for t := range c.Tensors() {
		total += size(t.DTypes[0].String(), t.Shape)
	}
	var done int64
	for t := range c.Tensors() {
		if i := int(done * int64(shards) / total); i >= len(out.Shards) {
			out.Shards = append(out.Shards, &Shard{Name: shardName(len(out.Shards), shards)})
		}
		s := out.Shards[len(out.Shards)-1]
		s.Tensors = append(s.Tensors, &Tensor{Name: t.Name, DType: t.DTypes[0].String(), Shape: t.Shape})
		done += size(t.DTypes[0].String(), t.Shape)
	}
	for _, s := range out.Shards {
		slices.SortFunc(s.Tensors, func(a, b *Tensor) int {
			return bytes.Compare(hash(a.Name), hash(b.Name))
		})
	}
	return out
}

func shardName(i, of int) string {
	if of == 1 {
		return "model.safetensors"
	}
	return fmt.Sprintf("model-%05d-of-%05d.safetensors", i+1, of)
}

// hash orders the data of a shard in a way that has nothing to do with the keys.
func hash(name string) []byte {
	h := fnv.New64a()
	h.Write([]byte(name))
	return h.Sum(nil)
}

// config returns the config.json of a conversion by MLX.
func config(c checkpoint.Config) map[string]any {
	text := map[string]any{
		"model_type":                      "qwen3_5_moe_text",
		"num_hidden_layers":               c.Layers,
		"hidden_size":                     c.Hidden,
		"vocab_size":                      c.Vocab,
		"max_position_embeddings":         c.MaxPositions,
		"full_attention_interval":         c.FullAttentionInterval,
		"num_attention_heads":             c.Heads,
		"num_key_value_heads":             c.KVHeads,
		"head_dim":                        c.HeadDim,
		"linear_num_key_heads":            c.DeltaKeyHeads,
		"linear_num_value_heads":          c.DeltaValueHeads,
		"linear_key_head_dim":             c.DeltaKeyDim,
		"linear_value_head_dim":           c.DeltaValueDim,
		"linear_conv_kernel_dim":          c.ConvTaps,
		"num_experts":                     c.Experts,
		"num_experts_per_tok":             c.ExpertsPerToken,
		"moe_intermediate_size":           c.ExpertDim,
		"shared_expert_intermediate_size": c.SharedExpertDim,
		"hidden_act":                      "silu",
		"attention_bias":                  false,
		"attn_output_gate":                true,
		"rms_norm_eps":                    1e-6,
		"tie_word_embeddings":             false,
		"eos_token_id":                    c.Vocab - 2,
		"dtype":                           "bfloat16",
		"rope_parameters": map[string]any{
			"rope_type":             "default",
			"rope_theta":            c.RopeTheta,
			"partial_rotary_factor": float64(c.RotaryDims) / float64(c.HeadDim),
			"mrope_interleaved":     true,
			"mrope_section":         []int{c.RotaryDims / 2, 0, 0},
		},
	}
	quantization := map[string]any{"group_size": 64, "bits": 4, "mode": "affine"}
	var layerTypes []string
	for layer := range c.Layers {
		for _, p := range []checkpoint.Part{checkpoint.Router, checkpoint.SharedMix} {
			quantization[p.Name(layer)] = map[string]any{"group_size": 64, "bits": 8}
		}
		kind := "linear_attention"
		if c.FullAttention(layer) {
			kind = "full_attention"
		}
		layerTypes = append(layerTypes, kind)
	}
	text["layer_types"] = layerTypes
	return map[string]any{
		"architectures":       []string{"Qwen3_5MoeForConditionalGeneration"},
		"model_type":          "qwen3_5_moe",
		"eos_token_id":        []int{c.Vocab - 1, c.Vocab - 2},
		"quantization":        quantization,
		"quantization_config": maps.Clone(quantization),
		"text_config":         text,
		"tie_word_embeddings": false,
	}
}

// Text returns text_config.
func (c *Checkpoint) Text() map[string]any { return c.Config["text_config"].(map[string]any) }

// Tensor returns a tensor by name.
func (c *Checkpoint) Tensor(name string) *Tensor {
	for _, s := range c.Shards {
		for _, t := range s.Tensors {
			if t.Name == name {
				return t
			}
		}
	}
	panic("checkpointtest: no tensor " + name)
}

// Remove takes a tensor out and returns it.
func (c *Checkpoint) Remove(name string) *Tensor {
	t := c.Tensor(name)
	for _, s := range c.Shards {
		s.Tensors = slices.DeleteFunc(s.Tensors, func(x *Tensor) bool { return x == t })
	}
	return t
}

// small returns the files that are no shards.
func (c *Checkpoint) small() map[string][]byte {
	files := map[string][]byte{"config.json": encode(c.Config)}
	if c.Generation != nil {
		files["generation_config.json"] = encode(c.Generation)
	}
	if !c.NoIndex {
		weights := map[string]string{}
		for _, s := range c.Shards {
			for _, t := range s.Tensors {
				weights[t.Name] = s.Name
			}
		}
		files["model.safetensors.index.json"] = encode(map[string]any{"weight_map": weights})
	}
	return files
}

// apply lets the further files win.
func (c *Checkpoint) apply(files map[string][]byte) {
	for name, data := range c.Files {
		if data == nil {
			delete(files, name)
		} else {
			files[name] = data
		}
	}
}

// Contents returns all files.
func (c *Checkpoint) Contents() map[string][]byte {
	files := c.small()
	for _, s := range c.Shards {
		files[s.Name] = s.Encode()
	}
	c.apply(files)
	return files
}

// Source returns the checkpoint in memory.
func (c *Checkpoint) Source() checkpoint.Source {
	return checkpoint.Memory("synthetic", c.Contents())
}

// Write writes the checkpoint to a folder. Zeros are holes in the files.
func (c *Checkpoint) Write(dir string) error {
	files := c.small()
	for _, s := range c.Shards {
		if err := s.write(filepath.Join(dir, s.Name)); err != nil {
			return err
		}
	}
	c.apply(files)
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			return err
		}
	}
	return nil
}

// Header returns the JSON header of the shard.
func (s *Shard) Header() []byte {
	header := map[string]any{"__metadata__": map[string]string{"format": "mlx"}}
	var off int64
	for _, t := range s.Tensors {
		n := size(t.DType, t.Shape)
		shape := t.Shape
		if shape == nil {
			shape = []int{}
		}
		header[t.Name] = map[string]any{"dtype": t.DType, "shape": shape, "data_offsets": []int64{off, off + n}}
		off += n
	}
	return append(encode(header), bytes.Repeat([]byte(" "), s.Pad)...)
}

// DataSize returns the bytes of all tensors.
func (s *Shard) DataSize() int64 {
	var n int64
	for _, t := range s.Tensors {
		n += size(t.DType, t.Shape)
	}
	return n
}

// Encode returns the whole file.
func (s *Shard) Encode() []byte {
	out := Frame(s.Header())
	for _, t := range s.Tensors {
		data := make([]byte, size(t.DType, t.Shape))
		copy(data, t.Data)
		out = append(out, data...)
	}
	return out
}

// Frame returns a header with its length before it.
func Frame(header []byte) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
}

func (s *Shard) write(path string) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := Frame(s.Header())
	if _, err := f.Write(head); err != nil {
		return err
	}
	off := int64(len(head))
	for _, t := range s.Tensors {
		if _, err := f.WriteAt(t.Data, off); err != nil {
			return err
		}
		off += size(t.DType, t.Shape)
	}
	return f.Truncate(off)
}

// size returns the bytes of a tensor.
func size(dtype string, shape tensor.Shape) int64 {
	n, _ := shape.Elements()
	if d, ok := tensor.ParseDType(dtype); ok {
		return n * int64(d.Size())
	}
	switch dtype {
	case "U8", "I8", "BOOL", "F8_E4M3":
		return n
	case "F16", "I16":
		return 2 * n
	case "I64":
		return 8 * n
	}
	panic("checkpointtest: element type " + dtype)
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
