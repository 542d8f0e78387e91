package checkpoint_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"calla/core/checkpoint"
	"calla/core/checkpoint/checkpointtest"
	"calla/core/tensor"
)

const tiny = "../conform/testdata/tiny"

// TestOpenTiny opens the fixture that scripts/oracle/make_checkpoint.py wrote.
// Places and digests were read from its files with Python.
func TestOpenTiny(t *testing.T) {
	c, err := checkpoint.Open(checkpoint.Dir(tiny), anySize)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := checkpoint.Config{
		Layers: 8, Hidden: 128, Vocab: 720, MaxPositions: 4096, FullAttentionInterval: 4,
		Heads: 8, KVHeads: 2, HeadDim: 64, RotaryDims: 16, RopeTheta: 10_000_000,
		DeltaKeyHeads: 2, DeltaValueHeads: 4, DeltaKeyDim: 64, DeltaValueDim: 64, ConvTaps: 4,
		Experts: 16, ExpertsPerToken: 4, ExpertDim: 64, SharedExpertDim: 64, NormEps: 1e-6,
	}
	if c.Config() != want {
		t.Errorf("config %+v, want %+v", c.Config(), want)
	}
	if got, want := c.Bytes(), int64(2736416); got != want {
		t.Errorf("%d bytes of weights, want %d", got, want)
	}
	if got, want := c.Name(), "tiny"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
	for _, w := range []struct {
		name   string
		dtype  tensor.DType
		shape  tensor.Shape
		shard  string
		offset int64
		sha256 string
	}{
		{"language_model.model.embed_tokens.weight", tensor.U32, tensor.Shape{720, 16}, first, 375992,
			"453d179a4f2b07fd3a697e80a511a9cf9dd9cf394bd41bd2a477c29543098d2f"},
		{"language_model.model.layers.3.self_attn.q_norm.weight", tensor.BF16, tensor.Shape{64}, first, 1122684,
			"d71ff1cbcb8653a59d7b2f441deee3c32105472409f6451d50341ae386750e5f"},
		{"language_model.model.layers.7.mlp.switch_mlp.down_proj.scales", tensor.BF16, tensor.Shape{16, 128, 1}, second, 401360,
			"8c875a116fd67ce2b37cf5689e4b185448bdb94fe6fb8e0c1f708d46645d8e23"},
		{"language_model.model.layers.0.linear_attn.A_log", tensor.BF16, tensor.Shape{4}, first, 1256936,
			"24663e7c21da3a3a3a18a6f23643f042c3886f813f3f490dc7bad40fea02f2b3"},
	} {
		got, ok := c.Weight(w.name)
		if !ok {
			t.Errorf("no weight %s", w.name)
			continue
		}
		if got.DType != w.dtype || !slices.Equal(got.Shape, w.shape) || got.Shard != w.shard || got.Offset != w.offset {
			t.Errorf("%s: %v %v in %s at %d, want %v %v in %s at %d", w.name,
				got.DType, got.Shape, got.Shard, got.Offset, w.dtype, w.shape, w.shard, w.offset)
		}
		if sum := fmt.Sprintf("%x", sha256.Sum256(got.Bytes())); sum != w.sha256 {
			t.Errorf("%s: SHA-256 %s, want %s", w.name, sum, w.sha256)
		}
		read := make([]byte, got.Size)
		if n, err := got.ReadAt(read, 0); n != len(read) || !bytes.Equal(read, got.Bytes()) {
			t.Errorf("%s: ReadAt read %d bytes, %v, not the same as Bytes", w.name, n, err)
		}
		if n, err := got.ReadAt(make([]byte, 3), got.Size-2); n != 2 || err == nil {
			t.Errorf("%s: ReadAt past the end read %d bytes, %v, want 2 and an error", w.name, n, err)
		}
	}
	if _, ok := c.Weight("vision_tower.patch_embed.proj.weight"); ok {
		t.Error("the vision tower became a weight")
	}
	if got, want := c.StopTokens(), []int32{671, 673}; !slices.Equal(got, want) {
		t.Errorf("stop tokens %v, want %v", got, want)
	}
}

// TestOpenTinyAsServed refuses the fixture without --any-size.
func TestOpenTinyAsServed(t *testing.T) {
	_, err := checkpoint.Open(checkpoint.Dir(tiny), checkpoint.Options{})
	if err == nil || !strings.Contains(err.Error(), "text_config.num_hidden_layers is 8, want 40") ||
		!strings.Contains(err.Error(), "--any-size") {
		t.Errorf("error %v, want the first field that differs and --any-size", err)
	}
}

func TestExact(t *testing.T) {
	src := checkpointtest.New(checkpointtest.Small, 1).Source()
	other := checkpointtest.Small
	other.Vocab++
	c, err := checkpoint.Open(src, checkpoint.Options{Exact: []checkpoint.Config{other, checkpointtest.Small}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got, want := c.Name(), "synthetic"; got != want {
		t.Errorf("name %q, want %q", got, want)
	}
}

// TestGeneration reads generation_config.json and the stop tokens of every
// file.
func TestGeneration(t *testing.T) {
	greedy := checkpoint.Generation{Temperature: 1, TopP: 1}
	for _, tt := range []struct {
		name   string
		change func(c *synthetic)
		want   checkpoint.Generation
		stop   []int32
	}{
		{"as it is", func(c *synthetic) {},
			checkpoint.Generation{DoSample: true, Temperature: 1, TopK: 20, TopP: 0.95}, []int32{30, 31}},
		{"no file", func(c *synthetic) { c.Generation = nil }, greedy, []int32{30, 31}},
		{"no fields", func(c *synthetic) { c.Generation = object{} }, greedy, []int32{30, 31}},
		{"null fields", func(c *synthetic) {
			c.Generation = object{"do_sample": nil, "temperature": nil, "top_k": nil, "top_p": nil, "eos_token_id": nil}
		}, greedy, []int32{30, 31}},
		{"fields of others", func(c *synthetic) { c.Generation = object{"transformers_version": "5", "pad_token_id": 900} },
			greedy, []int32{30, 31}},
		{"bounds", func(c *synthetic) {
			c.Generation = object{"do_sample": true, "temperature": 2, "top_k": 32, "top_p": 1}
		}, checkpoint.Generation{DoSample: true, Temperature: 2, TopK: 32, TopP: 1}, []int32{30, 31}},
		{"each file its own stop token", func(c *synthetic) {
			c.Config["eos_token_id"], c.Text()["eos_token_id"], c.Generation["eos_token_id"] = 9, 3, []int{3, 7}
		}, checkpoint.Generation{DoSample: true, Temperature: 1, TopK: 20, TopP: 0.95}, []int32{3, 7, 9}},
		{"no stop token", func(c *synthetic) {
			delete(c.Config, "eos_token_id")
			c.Text()["eos_token_id"] = nil
			c.Generation = nil
		}, greedy, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := checkpointtest.New(checkpointtest.Small, 1)
			tt.change(s)
			c, err := checkpoint.Open(s.Source(), anySize)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if got := c.Generation(); got != tt.want {
				t.Errorf("generation %+v, want %+v", got, tt.want)
			}
			if got := c.StopTokens(); !slices.Equal(got, tt.stop) {
				t.Errorf("stop tokens %v, want %v", got, tt.stop)
			}
		})
	}
}

func TestReadFile(t *testing.T) {
	s := checkpointtest.New(checkpointtest.Small, 1)
	s.Files["chat_template.jinja"] = []byte("{{ messages }}")
	c, err := checkpoint.Open(s.Source(), anySize)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := c.ReadFile("chat_template.jinja")
	if err != nil || string(got) != "{{ messages }}" {
		t.Errorf("got %q, %v", got, err)
	}
	got[0] = 'x'
	if s.Files["chat_template.jinja"][0] == 'x' {
		t.Error("the copy shares memory with the file")
	}
	if _, err := c.ReadFile("tokenizer.json"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "tokenizer.json") {
		t.Errorf("error %v, want fs.ErrNotExist and the name", err)
	}
}
