package checkpoint_test

import (
	"cmp"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"calla/core/checkpoint"
	"calla/core/checkpoint/checkpointtest"
	"calla/core/tensor"
)

// textBytes are the bytes of the text weights in the published files, known
// from their sizes (core/model/SPEC.md, section 1).
const textBytes = 19_508_787_456

// TestPublishedTensors compares the table of tensors with the sums and names
// that are known of the published files (core/model/SPEC.md, sections 3 and 6).
func TestPublishedTensors(t *testing.T) {
	var total, experts, delta, attention, head int64
	shapes := map[string]string{}
	for tt := range checkpoint.Published.Tensors() {
		n, _ := tt.Shape.Elements()
		n *= int64(tt.DTypes[0].Size())
		total += n
		switch name := tt.Name; {
		case strings.Contains(name, "layers.5.mlp.switch_mlp."):
			experts += n
		case strings.Contains(name, "layers.5.linear_attn."):
			delta += n
		case strings.Contains(name, "layers.39.self_attn."):
			attention += n
		case strings.Contains(name, "lm_head"):
			head += n
		}
		shapes[tt.Name] = tt.DTypes[0].String() + " " + tt.Shape.String()
	}
	for _, s := range []struct {
		what      string
		got, want int64
	}{
		{"text weights", total, textBytes},
		{"routed experts of a layer", experts, 452_984_832},
		{"a delta net", delta, 19_014_016},
		{"an attention", attention, 15_336_448},
		{"the head", head, 286_064_640},
	} {
		if s.got != s.want {
			t.Errorf("%s: %d bytes, want %d", s.what, s.got, s.want)
		}
	}
	for name, want := range map[string]string{
		"language_model.model.layers.0.mlp.switch_mlp.gate_proj.weight": "U32 [256 512 256]",
		"language_model.model.layers.0.mlp.switch_mlp.gate_proj.scales": "BF16 [256 512 32]",
		"language_model.model.layers.39.mlp.gate.weight":                "U32 [256 512]",
		"language_model.model.layers.1.linear_attn.conv1d.weight":       "BF16 [8192 4 1]",
		"language_model.model.layers.3.self_attn.q_proj.biases":         "BF16 [8192 32]",
		"language_model.model.layers.3.self_attn.o_proj.weight":         "U32 [2048 512]",
		"language_model.model.embed_tokens.weight":                      "U32 [248320 256]",
		"language_model.model.layers.3.linear_attn.A_log":               "",
		"language_model.model.layers.4.self_attn.q_norm.weight":         "",
	} {
		if shapes[name] != want {
			t.Errorf("%s: %q, want %q", name, shapes[name], want)
		}
	}
}

// publishedShards are the sizes of the published shards.
var publishedShards = []int64{5_288_196_018, 5_368_472_749, 5_368_324_139, 4_377_211_365}

// published describes the published checkpoint: its own small files, and shards
// of its own sizes with the tensors that its index puts there. Only the order of
// the data in a shard is ours: the smallest first, which leaves room in a header
// of the published length.
func published(t *testing.T) *checkpointtest.Checkpoint {
	t.Helper()
	c := &checkpointtest.Checkpoint{NoIndex: true, Files: map[string][]byte{}}
	for _, name := range []string{"config.json", "generation_config.json", index} {
		data, err := os.ReadFile(filepath.Join("testdata", "published", name))
		if err != nil {
			t.Fatal(err)
		}
		c.Files[name] = data
	}
	var x struct {
		Shards map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(c.Files[index], &x); err != nil {
		t.Fatal(err)
	}
	tensors := visionTower()
	for tt := range checkpoint.Published.Tensors() {
		tensors = append(tensors, &checkpointtest.Tensor{Name: tt.Name, DType: tt.DTypes[0].String(), Shape: tt.Shape})
	}
	slices.SortFunc(tensors, func(a, b *checkpointtest.Tensor) int {
		return cmp.Or(cmp.Compare(elements(a), elements(b)), strings.Compare(a.Name, b.Name))
	})
	for i, bytes := range publishedShards {
		s := &checkpointtest.Shard{Name: fmt.Sprintf("model-%05d-of-00004.safetensors", i+1)}
		for _, tt := range tensors {
			if x.Shards[tt.Name] == s.Name {
				s.Tensors = append(s.Tensors, tt)
			}
		}
		header := int(bytes - s.DataSize() - 8)
		if s.Pad = header - len(s.Header()); s.Pad < 0 {
			t.Fatalf("%s: header of %d bytes, want at most %d", s.Name, len(s.Header()), header)
		}
		c.Shards = append(c.Shards, s)
	}
	return c
}

func elements(t *checkpointtest.Tensor) int64 {
	n, _ := tensor.Shape(t.Shape).Elements()
	return n
}

// visionTower lists the tensors of the published checkpoint that are skipped.
func visionTower() []*checkpointtest.Tensor {
	const width, inner = 1152, 4304
	var all []*checkpointtest.Tensor
	add := func(name string, shape ...int) {
		all = append(all, &checkpointtest.Tensor{Name: "vision_tower." + name, DType: "BF16", Shape: shape})
	}
	linear := func(name string, out, in int) {
		add(name+".weight", out, in)
		add(name+".bias", out)
	}
	norm := func(name string) {
		add(name+".weight", width)
		add(name+".bias", width)
	}
	for i := range 27 {
		block := fmt.Sprintf("blocks.%d.", i)
		norm(block + "norm1")
		norm(block + "norm2")
		linear(block+"attn.qkv", 3*width, width)
		linear(block+"attn.proj", width, width)
		linear(block+"mlp.linear_fc1", inner, width)
		linear(block+"mlp.linear_fc2", width, inner)
	}
	add("patch_embed.proj.weight", width, 2, 16, 16, 3)
	add("patch_embed.proj.bias", width)
	add("pos_embed.weight", 2304, width)
	norm("merger.norm")
	linear("merger.linear_fc1", 4*width, 4*width)
	linear("merger.linear_fc2", 2048, 4*width)
	return all
}

// TestPublishedFiles compares the files in testdata with the digests of the
// published ones, of generation_config.json as git computes it.
func TestPublishedFiles(t *testing.T) {
	files := published(t).Files
	for name, want := range map[string]string{
		"config.json": "a822a9e48b0aafbe3144ec37d4fb067e178ed96615ce6e4420b3149893cc5767",
		index:         "0b28df60e33753a14e816d3b31577ae2c93884c58430a4a6de6ae9ea483842ea",
	} {
		if got := fmt.Sprintf("%x", sha256.Sum256(files[name])); got != want {
			t.Errorf("%s: SHA-256 %s, want %s", name, got, want)
		}
	}
	generation := files["generation_config.json"]
	blob := fmt.Appendf(nil, "blob %d\x00%s", len(generation), generation)
	if got, want := fmt.Sprintf("%x", sha1.Sum(blob)), "023756cfadf88e5bf69eefeee3e172f38c448d64"; got != want {
		t.Errorf("generation_config.json: git blob %s, want %s", got, want)
	}
}

// TestOpenPublished opens the published checkpoint, whose data are holes that
// take no space: four shards of 5 GB.
func TestOpenPublished(t *testing.T) {
	dir := t.TempDir()
	s := published(t)
	first := s.Shards[0]
	marked := first.Tensors[len(first.Tensors)-1]
	write(t, s, dir)
	end := publishedShards[0]
	f, err := os.OpenFile(filepath.Join(dir, first.Name), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte("last"), end-4); err != nil {
		t.Fatal(err)
	}
	f.Close()

	src := &watched{Source: checkpoint.Dir(dir)}
	c, err := checkpoint.Open(src, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := src.weightReads.Load(); got != 0 {
		t.Errorf("opening read behind a header %d times, want never", got)
	}
	if c.Config() != checkpoint.Published {
		t.Errorf("config %+v, want %+v", c.Config(), checkpoint.Published)
	}
	if got := c.Bytes(); got != textBytes {
		t.Errorf("%d bytes of weights, want %d", got, textBytes)
	}
	if got, want := c.StopTokens(), []int32{248044, 248046}; !slices.Equal(got, want) {
		t.Errorf("stop tokens %v, want %v", got, want)
	}
	if got, want := c.Generation(), (checkpoint.Generation{DoSample: true, Temperature: 1, TopK: 20, TopP: 0.95}); got != want {
		t.Errorf("generation %+v, want %+v", got, want)
	}
	w, ok := c.Weight(marked.Name)
	if !ok || w.Offset+w.Size != end {
		t.Fatalf("%s ends at %d, want %d", marked.Name, w.Offset+w.Size, end)
	}
	if got := string(w.Bytes()[w.Size-4:]); got != "last" {
		t.Errorf("mapped beyond 4 GiB: %q, want %q", got, "last")
	}
	p := make([]byte, 4)
	if _, err := w.ReadAt(p, w.Size-4); err != nil || string(p) != "last" {
		t.Errorf("read beyond 4 GiB: %q, %v, want %q", p, err, "last")
	}
}

func write(t *testing.T, s *checkpointtest.Checkpoint, dir string) {
	t.Helper()
	if err := s.Write(dir); err != nil {
		t.Skipf("no files with holes here: %v", err)
	}
}

// TestOpenMemory opens the published checkpoint with little memory: what the
// files hold is looked up, not copied.
func TestOpenMemory(t *testing.T) {
	dir := t.TempDir()
	write(t, published(t), dir)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c, err := checkpoint.Open(checkpoint.Dir(dir), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	runtime.ReadMemStats(&after)
	// Headers and JSON files have 515 kB together.
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(8<<20); got > most {
		t.Errorf("%d bytes allocated, want at most %d", got, most)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got, most := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(1<<20); got > most {
		t.Errorf("%d bytes kept, want at most %d", got, most)
	}
}

// watched counts reads behind the headers of shards.
type watched struct {
	checkpoint.Source
	weightReads atomic.Int64
}

func (w *watched) Open(name string) (checkpoint.File, error) {
	f, err := w.Source.Open(name)
	if err != nil || filepath.Ext(name) != ".safetensors" {
		return f, err
	}
	head := make([]byte, 8)
	if _, err := f.ReadAt(head, 0); err != nil {
		return nil, err
	}
	var n int64
	for i, b := range head {
		n |= int64(b) << (8 * i)
	}
	return &watchedFile{File: f, source: w, header: 8 + n}, nil
}

type watchedFile struct {
	checkpoint.File
	source *watched
	header int64
}

func (f *watchedFile) ReadAt(p []byte, off int64) (int, error) {
	if off+int64(len(p)) > f.header {
		f.source.weightReads.Add(1)
	}
	return f.File.ReadAt(p, off)
}

func (f *watchedFile) Bytes() []byte {
	f.source.weightReads.Add(1)
	return f.File.Bytes()
}
