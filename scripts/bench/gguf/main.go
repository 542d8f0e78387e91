// Command gguf writes a checkpoint in llama.cpp's file format, so that it can
// be measured beside Calla on the same model:
//
//	gguf [-format q4_0] CHECKPOINT FILE
//
// The file has no tokenizer: measurements feed token ids.
package main

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"

	"calla/core/checkpoint"
	"calla/core/model"
)

func main() {
	names := strings.Join(slices.Sorted(maps.Keys(formats)), ", ")
	name := flag.String("format", "q4_0", "of 4-bit matrices: "+names)
	flag.Parse()
	f, ok := formats[*name]
	if !ok || flag.NArg() != 2 {
		fmt.Fprintf(os.Stderr, "usage: gguf [-format %s] CHECKPOINT FILE\n", names)
		os.Exit(64)
	}
	if err := convert(flag.Arg(0), flag.Arg(1), f); err != nil {
		fmt.Fprintln(os.Stderr, "gguf:", err)
		os.Exit(1)
	}
}

// convert writes the checkpoint in folder from to the file to, which appears
// when it is whole.
func convert(from, to string, f *format) (err error) {
	c, err := checkpoint.Open(checkpoint.Dir(from), checkpoint.Options{AnySize: true})
	if err != nil {
		return err
	}
	defer c.Close()
	arrays := newLayout(model.Bind(c, 0), f)
	head := describe(c.Config())
	offsets := make([]int64, len(arrays))
	end := int64(0)
	for i, a := range arrays {
		offsets[i] = end
		head.add(a, end)
		end += aligned(int64(a.rows) * int64(a.rowBytes))
	}
	part := to + ".part"
	out, err := os.Create(part)
	if err != nil {
		return err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err == nil {
			err = os.Rename(part, to)
		}
	}()
	begin := head.bytes()
	if _, err := out.Write(begin); err != nil {
		return err
	}
	if err := out.Truncate(int64(len(begin)) + end); err != nil {
		return err
	}
	for i, a := range arrays {
		if err := writeArray(out, a, int64(len(begin))+offsets[i]); err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// writeArray makes an array's rows with all cores.
func writeArray(out *os.File, a array, offset int64) error {
	const piece = 4 << 20
	rows := max(1, piece/a.rowBytes)
	starts := make(chan int)
	errs := make([]error, runtime.GOMAXPROCS(0))
	var workers sync.WaitGroup
	for w := range errs {
		workers.Go(func() {
			buffer := make([]byte, rows*a.rowBytes)
			for from := range starts {
				n := min(rows, a.rows-from)
				for r := range n {
					a.row(buffer[r*a.rowBytes:(r+1)*a.rowBytes], from+r)
				}
				_, err := out.WriteAt(buffer[:n*a.rowBytes], offset+int64(from)*int64(a.rowBytes))
				errs[w] = errors.Join(errs[w], err)
			}
		})
	}
	for from := 0; from < a.rows; from += rows {
		starts <- from
	}
	close(starts)
	workers.Wait()
	return errors.Join(errs...)
}

// describe returns the metadata that llama.cpp reads of this architecture.
func describe(c checkpoint.Config) *header {
	const arch = "qwen35moe"
	h := &header{}
	h.set("general.architecture", arch)
	h.set("general.name", "calla bench")
	h.set("tokenizer.ggml.model", "none")
	sizes := map[string]int{
		"vocab_size":                        c.Vocab,
		"block_count":                       c.Layers,
		"context_length":                    c.MaxPositions,
		"embedding_length":                  c.Hidden,
		"feed_forward_length":               c.ExpertDim,
		"attention.head_count":              c.Heads,
		"attention.head_count_kv":           c.KVHeads,
		"attention.key_length":              c.HeadDim,
		"attention.value_length":            c.HeadDim,
		"rope.dimension_count":              c.RotaryDims,
		"expert_count":                      c.Experts,
		"expert_used_count":                 c.ExpertsPerToken,
		"expert_feed_forward_length":        c.ExpertDim,
		"expert_shared_feed_forward_length": c.SharedExpertDim,
		"ssm.conv_kernel":                   c.ConvTaps,
		"ssm.state_size":                    c.DeltaKeyDim,
		"ssm.group_count":                   c.DeltaKeyHeads,
		"ssm.time_step_rank":                c.DeltaValueHeads,
		"ssm.inner_size":                    c.DeltaValueHeads * c.DeltaValueDim,
		"full_attention_interval":           c.FullAttentionInterval,
	}
	for _, key := range slices.Sorted(maps.Keys(sizes)) {
		h.set(arch+"."+key, uint32(sizes[key]))
	}
	h.set(arch+".attention.layer_norm_rms_epsilon", c.NormEps)
	h.set(arch+".rope.freq_base", float32(c.RopeTheta))
	h.set(arch+".rope.dimension_sections", sections(c.RotaryDims/2))
	return h
}

// sections shares the rotated pairs out to the three positions of an image. All
// three are the same number in text, so how is of no matter.
func sections(pairs int) []int32 {
	third := (pairs + 2) / 3
	return []int32{int32(third), int32(third), int32(pairs - 2*third), 0}
}
