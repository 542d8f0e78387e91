package checkpoint_test

import (
	"os"
	"path/filepath"
	"runtime"
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

// TestOpenPublishedSize opens files of the published size, whose data are holes
// that take no space: four shards of 5 GB.
func TestOpenPublishedSize(t *testing.T) {
	dir := t.TempDir()
	s := checkpointtest.New(checkpoint.Published, 4)
	marked := markLast(s)
	if err := s.Write(dir); err != nil {
		t.Skipf("no room for files with holes: %v", err)
	}
	src := &watched{Source: checkpoint.Dir(dir)}
	c, err := checkpoint.Open(src, checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.Bytes(); got != textBytes {
		t.Errorf("%d bytes of weights, want %d", got, textBytes)
	}
	if got := src.weightReads.Load(); got != 0 {
		t.Errorf("opening read behind a header %d times, want never", got)
	}
	w, ok := c.Weight(marked)
	if !ok || w.Offset < 1<<32 {
		t.Fatalf("%s at %d, want it beyond 4 GiB", marked, w.Offset)
	}
	if got := string(w.Bytes()[w.Size-4:]); got != "last" {
		t.Errorf("mapped: %q, want %q", got, "last")
	}
	p := make([]byte, 4)
	if _, err := w.ReadAt(p, w.Size-4); err != nil || string(p) != "last" {
		t.Errorf("read: %q, %v, want %q", p, err, "last")
	}
	odd := false
	for tt := range c.Config().Tensors() {
		w, _ := c.Weight(tt.Name)
		odd = odd || w.Offset%2 == 1
	}
	if !odd {
		t.Error("every weight is at an even byte; the published ones are not")
	}
}

// markLast ends the last tensor of the first shard with a word.
func markLast(s *checkpointtest.Checkpoint) string {
	tensors := s.Shards[0].Tensors
	for i := range tensors {
		// A vector, whose data costs nothing to hold.
		if t := tensors[i]; strings.HasSuffix(t.Name, "layernorm.weight") {
			copy(tensors[i:], tensors[i+1:])
			tensors[len(tensors)-1] = t
			t.Data = make([]byte, t.Shape[0]*tensor.BF16.Size())
			copy(t.Data[len(t.Data)-4:], "last")
			return t.Name
		}
	}
	panic("no norm in the first shard")
}

// TestOpenMemory opens files of the published size with little memory: what
// they hold is looked up, not copied.
func TestOpenMemory(t *testing.T) {
	dir := t.TempDir()
	if err := checkpointtest.New(checkpoint.Published, 4).Write(dir); err != nil {
		t.Skipf("no room for files with holes: %v", err)
	}
	var headers int64
	files, _ := filepath.Glob(filepath.Join(dir, "*.json"))
	for _, name := range files {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		headers += info.Size()
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := checkpoint.Open(checkpoint.Dir(dir), checkpoint.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	runtime.ReadMemStats(&after)
	if got, most := after.TotalAlloc-before.TotalAlloc, uint64(8<<20); got > most {
		t.Errorf("%d bytes allocated for %d bytes of JSON, want at most %d", got, headers, most)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if got, most := int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(2<<20); got > most {
		t.Errorf("%d bytes kept, want at most %d", got, most)
	}
	runtime.KeepAlive(c)
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
