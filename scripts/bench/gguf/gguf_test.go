package main

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/model"
)

const demo = "../../../bundle/demo"

func TestTiled(t *testing.T) {
	o := tiled(2, 6)
	var got []int
	for head := range 6 {
		got = append(got, o(head))
	}
	// Of key head 0 are value heads 0 1 2, of key head 1 are 3 4 5.
	if want := []int{0, 3, 1, 4, 2, 5}; !slices.Equal(got, want) {
		t.Errorf("tiled(2, 6) = %v, want %v", got, want)
	}
	if got := after(4, wide(o, 2))(4 + 3); got != 4+7 {
		t.Errorf("row 3 of the values after 4 others comes from %d, want 11", got)
	}
}

// listed is a tensor as a file lists it.
type listed struct {
	dims   []uint64
	kind   uint32
	offset uint64
}

// reader reads GGUF by its specification, with panics for errors.
type reader struct{ *bytes.Reader }

func get[T any](r reader) (v T) {
	if err := binary.Read(r, binary.LittleEndian, &v); err != nil {
		panic(err)
	}
	return v
}

func (r reader) text() string {
	b := make([]byte, get[uint64](r))
	if _, err := io.ReadFull(r, b); err != nil {
		panic(err)
	}
	return string(b)
}

func (r reader) value() any {
	switch kind := get[uint32](r); kind {
	case kindString:
		return r.text()
	case kindUint32:
		return get[uint32](r)
	case kindFloat32:
		return get[float32](r)
	case kindArray:
		if get[uint32](r) != kindInt32 {
			panic("an array of another type")
		}
		v := make([]int32, get[uint64](r))
		for i := range v {
			v[i] = get[int32](r)
		}
		return v
	default:
		panic(kind)
	}
}

// parse reads a whole file.
func parse(file []byte) (meta map[string]any, tensors map[string]listed, data []byte) {
	r := reader{bytes.NewReader(file)}
	if magic := get[[4]byte](r); string(magic[:]) != "GGUF" || get[uint32](r) != 3 {
		panic("no GGUF of version 3")
	}
	count, metas := get[uint64](r), get[uint64](r)
	meta, tensors = map[string]any{}, map[string]listed{}
	for range metas {
		key := r.text()
		meta[key] = r.value()
	}
	for range count {
		name, l := r.text(), listed{}
		for range get[uint32](r) {
			l.dims = append(l.dims, get[uint64](r))
		}
		l.kind, l.offset = get[uint32](r), get[uint64](r)
		tensors[name] = l
	}
	at := len(file) - r.Len()
	return meta, tensors, file[(at+31)/32*32:]
}

// TestConvertDemo writes the built-in model and reads the file again.
func TestConvertDemo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.gguf")
	if err := convert(demo, path, formats["q4_1"]); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	meta, tensors, data := parse(file)
	c, err := checkpoint.Open(checkpoint.Dir(demo), checkpoint.Options{AnySize: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	config := c.Config()
	for key, want := range map[string]any{
		"general.architecture":             "qwen35moe",
		"qwen35moe.block_count":            uint32(config.Layers),
		"qwen35moe.rope.freq_base":         float32(config.RopeTheta),
		"qwen35moe.ssm.time_step_rank":     uint32(config.DeltaValueHeads),
		"qwen35moe.attention.head_count":   uint32(config.Heads),
		"qwen35moe.expert_used_count":      uint32(config.ExpertsPerToken),
		"qwen35moe.vocab_size":             uint32(config.Vocab),
		"qwen35moe.attention.key_length":   uint32(config.HeadDim),
		"qwen35moe.rope.dimension_count":   uint32(config.RotaryDims),
		"qwen35moe.embedding_length":       uint32(config.Hidden),
		"qwen35moe.ssm.inner_size":         uint32(config.DeltaValueHeads * config.DeltaValueDim),
		"qwen35moe.ssm.group_count":        uint32(config.DeltaKeyHeads),
		"qwen35moe.feed_forward_length":    uint32(config.ExpertDim),
		"qwen35moe.attention.value_length": uint32(config.HeadDim),
	} {
		if meta[key] != want {
			t.Errorf("%s is %v, want %v", key, meta[key], want)
		}
	}
	b := model.Bind(c, 0)
	checkMatrix(t, "blk.0.ffn_down_exps.weight", tensors, data, b.Layers[0].MoE.Down, asItIs, asItIs)
	heads := tiled(config.DeltaKeyHeads, config.DeltaValueHeads)
	checkMatrix(t, "blk.1.attn_gate.weight", tensors, data, b.Layers[1].Delta.Z, wide(heads, config.DeltaValueDim), asItIs)
	checkMatrix(t, "blk.1.ssm_out.weight", tensors, data, b.Layers[1].Delta.Out, asItIs, wide(heads, config.DeltaValueDim/block))
	checkMatrix(t, "output.weight", tensors, data, b.Head, asItIs, asItIs)
	decay := tensors["blk.2.ssm_a"]
	got := math.Float32frombits(binary.LittleEndian.Uint32(data[decay.offset+4:]))
	want := -math.Exp(float64(values32(b.Layers[2].Delta.ALog)[heads(1)]))
	if math.Abs(float64(got)/want-1) > 1e-6 {
		t.Errorf("the decay of llama.cpp's value head 1 is %g, want %g", got, want)
	}
}

// checkMatrix compares the last row of a matrix with the checkpoint's.
func checkMatrix(t *testing.T, name string, tensors map[string]listed, data []byte, q backend.Quantised, rows, blocks order) {
	t.Helper()
	l, ok := tensors[name]
	if !ok {
		t.Fatalf("%s is missing", name)
	}
	if l.dims[0] != uint64(q.In) || l.dims[1] != uint64(q.Out) || l.kind != formats["q4_1"].id || l.offset%32 != 0 {
		t.Fatalf("%s is listed as %+v, want %d values in %d rows of type %d", name, l, q.In, q.Out, formats["q4_1"].id)
	}
	last := q.Experts*q.Out - 1
	size := formats["q4_1"].rowBytes(q.In)
	row := data[int(l.offset)+last*size:][:size]
	from := rows(last)
	for i := range q.In {
		got := read["q4_1"](row[i/block*20:])[i%block]
		at := from*q.In + blocks(i/block)*block + i%block
		code := q.Weight.Bytes()[at/2] >> (4 * (at % 2)) & 15
		want := float64(bf16(q.Scales.Bytes(), at/64))*float64(code) + float64(bf16(q.Biases.Bytes(), at/64))
		if math.Abs(got-want) > 1e-3*math.Abs(want)+1e-6 {
			t.Fatalf("%s: value %d of row %d is %g, want %g", name, i, last, got, want)
		}
	}
}
