package bench

import (
	"testing"

	"calla/bundle/demo"
	"calla/core/checkpoint"
	"calla/core/model"
)

// The weights' bytes are Python's, of the demo model's safetensors header:
//
//	for name, t in header.items():
//	    size = t["data_offsets"][1] - t["data_offsets"][0]
//	    if "embed_tokens" in name: size //= 5120      # one of its rows
//	    elif "switch_mlp" in name: size = size * 4 // 16  # the experts of a token
//	    total += size
//
// The state is 9 delta nets of 4 heads × 64 × 64 float32 and 3 rows of 512
// bfloat16, read and written; a token of context is keys and values of 3 layers,
// 2 heads × 64 bfloat16.
func TestTrafficOf(t *testing.T) {
	c, err := checkpoint.Open(demo.Source(), checkpoint.Options{Exact: []checkpoint.Config{demo.Config}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	want := Traffic{Weights: 4615136, State: 2 * 9 * (4*64*64*4 + 3*512*2), Context: 3 * 2 * 2 * 64 * 2}
	got := TrafficOf(model.Bind(c, 0))
	if got != want {
		t.Errorf("TrafficOf = %+v, want %+v", got, want)
	}
	if n := got.at(1000); n != want.Weights+want.State+1000*want.Context {
		t.Errorf("at(1000) = %d", n)
	}
	if half := TrafficOf(model.Bind(c, 2560)); half.Weights >= got.Weights {
		t.Errorf("a head of half its rows reads %d bytes, all of it %d", half.Weights, got.Weights)
	}
}
