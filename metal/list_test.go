package metal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/tensor"
)

var update = flag.Bool("update", false, "write the golden lists")

// paper is a driver that runs nothing. Only its small buffers have memory.
type paper struct{ units bool }

func (paper) Name() string                       { return "paper" }
func (paper) Memory() (budget, total int64)      { return 0, 0 }
func (paper) MaxBuffer() int64                   { return 4 << 30 }
func (p paper) MatrixUnits() bool                { return p.units }
func (paper) Prepare([]Kernel) error             { return nil }
func (paper) Free(*Buffer)                       {}
func (paper) Commit(l *List) (Completion, error) { return done{}, nil }
func (paper) Close() error                       { return nil }
func (paper) NewBuffer(name string, bytes int64) (*Buffer, error) {
	b := &Buffer{Name: name, Size: bytes}
	if bytes <= 4<<20 {
		b.Bytes = make([]byte, bytes)
	}
	return b, nil
}

// fictitious makes a binding of weights that no file holds.
func fictitious(c checkpoint.Config) *backend.Binding {
	plain := func(n int) checkpoint.Weight {
		return checkpoint.Weight{DType: tensor.BF16, Size: int64(2 * n)}
	}
	matrix := func(experts, out, in, bits int) backend.Quantised {
		return backend.Quantised{Experts: experts, Out: out, In: in, Bits: bits}
	}
	h := c.Hidden
	b := &backend.Binding{Config: c, Embed: matrix(1, c.Vocab, h, 4), Head: matrix(1, c.Vocab, h, 4), Norm: plain(h)}
	for i := range c.Layers {
		l := backend.Layer{InputNorm: plain(h), PostNorm: plain(h), MoE: backend.MoE{
			Router: matrix(1, c.Experts, h, 8), SharedMix: matrix(1, 1, h, 8),
			Gate: matrix(c.Experts, c.ExpertDim, h, 4), Up: matrix(c.Experts, c.ExpertDim, h, 4), Down: matrix(c.Experts, h, c.ExpertDim, 4),
			SharedGate: matrix(1, c.SharedExpertDim, h, 4), SharedUp: matrix(1, c.SharedExpertDim, h, 4), SharedDown: matrix(1, h, c.SharedExpertDim, 4),
		}}
		if c.FullAttention(i) {
			q, kv := c.Heads*c.HeadDim, c.KVHeads*c.HeadDim
			l.Attention = &backend.Attention{
				Q: matrix(1, 2*q, h, 4), K: matrix(1, kv, h, 4), V: matrix(1, kv, h, 4), Out: matrix(1, h, q, 4),
				QNorm: plain(c.HeadDim), KNorm: plain(c.HeadDim),
			}
		} else {
			v := c.DeltaValueHeads * c.DeltaValueDim
			l.Delta = &backend.DeltaNet{
				QKV: matrix(1, c.ConvDim(), h, 4), Z: matrix(1, v, h, 4), B: matrix(1, c.DeltaValueHeads, h, 4), A: matrix(1, c.DeltaValueHeads, h, 4),
				Conv: plain(c.ConvDim() * c.ConvTaps), ALog: plain(c.DeltaValueHeads), DT: plain(c.DeltaValueHeads), Norm: plain(c.DeltaValueDim),
				Out: matrix(1, h, v, 4),
			}
		}
		b.Layers = append(b.Layers, l)
	}
	return b
}

// onPaper lays a model out without loading it.
func onPaper(t *testing.T, d paper, c checkpoint.Config, o Options) (*weights, *State) {
	t.Helper()
	w := &weights{
		device: New(d, o), config: c, shapes: newShapes(c),
		frequencies: ropeFrequencies(c.RotaryDims, c.RopeTheta),
	}
	if err := newPlan(w, fictitious(c)).allocate(); err != nil {
		t.Fatal(err)
	}
	if err := w.ring.allocate(w.device.driver); err != nil {
		t.Fatal(err)
	}
	s, err := w.NewState(c.MaxPositions)
	if err != nil {
		t.Fatal(err)
	}
	return w, s.(*State)
}

// listOf returns the dispatches of one call at a position.
func listOf(t *testing.T, c checkpoint.Config, call backend.Call, from int) []Dispatch {
	t.Helper()
	return listOn(t, paper{}, c, call, from)
}

func listOn(t *testing.T, d paper, c checkpoint.Config, call backend.Call, from int) []Dispatch {
	t.Helper()
	var lists []List
	w, s := onPaper(t, d, c, Options{Record: func(l *List) {
		lists = append(lists, List{append([]Dispatch(nil), l.Dispatches...)})
	}})
	s.length = from
	p, err := w.Begin(s, call)
	if err != nil {
		t.Fatal(err)
	}
	p.Embed()
	for i := range c.Layers {
		if c.FullAttention(i) {
			p.Attention(i)
		} else {
			p.DeltaNet(i)
		}
		p.MoE(i)
	}
	p.Head()
	if _, err := p.Commit(); err != nil {
		t.Fatal(err)
	}
	if len(lists) != 1 {
		t.Fatalf("%d lists, want the call in one", len(lists))
	}
	return lists[0].Dispatches
}

func decodeCall() backend.Call {
	return backend.Call{Phase: backend.Decode, Tokens: []int32{1}}
}

func prefillCall(rows int) backend.Call {
	return backend.Call{Phase: backend.Prefill, Tokens: make([]int32, rows), Segments: []int{0}}
}

func TestGoldenLists(t *testing.T) {
	four := checkpoint.Published
	four.Layers = 4
	for _, tt := range []struct {
		name string
		call backend.Call
		from int
	}{
		{"decode", decodeCall(), 4095},
		{"prefill", prefillCall(2048), 4096},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var b bytes.Buffer
			l := List{listOf(t, four, tt.call, tt.from)}
			if err := l.Print(&b); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", tt.name+".txt")
			if *update {
				if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(b.String(), "\n")); d != "" {
				t.Errorf("the list changed; -update accepts it:\n%s", d)
			}
		})
	}
}

// TestDispatchCount holds a decoded token to its budget of launches: three a
// delta layer, five an attention layer, three a mixture, three around.
func TestDispatchCount(t *testing.T) {
	got := len(listOf(t, checkpoint.Published, decodeCall(), 100_000))
	if want := 30*3 + 10*5 + 40*3 + 3; got != want || got > 290 {
		t.Errorf("%d dispatches a decoded token, want %d, at most 290", got, want)
	}
}

// preparing notes what it is to prepare, and goes no further.
type preparing struct {
	paper
	kernels []Kernel
}

var errPrepared = errors.New("prepared")

func (d *preparing) Prepare(kernels []Kernel) error {
	d.kernels = kernels
	return errPrepared
}

// TestPrepared checks that every dispatch of a decode step and of a prefill uses a
// kernel that loading the model has made ready, with its function constants.
func TestPrepared(t *testing.T) {
	small := checkpoint.Published
	small.Hidden, small.ExpertDim, small.SharedExpertDim = 128, 64, 192
	small.HeadDim, small.Heads, small.KVHeads, small.RotaryDims = 64, 4, 2, 16
	small.DeltaKeyHeads, small.DeltaKeyDim, small.DeltaValueDim = 2, 64, 128
	for name, c := range map[string]checkpoint.Config{"published": checkpoint.Published, "small": small} {
		for _, units := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, matrix units %v", name, units), func(t *testing.T) {
				d := &preparing{paper: paper{units}}
				if _, err := New(d, Options{}).Load(context.Background(), fictitious(c), nil); !errors.Is(err, errPrepared) {
					t.Fatalf("Load: %v", err)
				}
				unused := slices.Clone(d.kernels)
				for _, call := range []backend.Call{decodeCall(), prefillCall(2048)} {
					for i, x := range listOn(t, d.paper, c, call, 0) {
						if !slices.Contains(d.kernels, x.Kernel) {
							t.Errorf("dispatch %d of %v uses %v, which was not prepared", i, call.Phase, x.Kernel)
						}
						unused = slices.DeleteFunc(unused, func(k Kernel) bool { return k == x.Kernel })
					}
				}
				if len(unused) > 0 {
					t.Errorf("%v are prepared, and nothing uses them", unused)
				}
			})
		}
	}
}

// TestLimits holds every dispatch to Metal's limits, and those that stream
// weights to more than one threadgroup.
func TestLimits(t *testing.T) {
	c := checkpoint.Published
	for name, call := range map[string]backend.Call{
		"decode": decodeCall(), "one row": prefillCall(1), "2048 rows": prefillCall(2048), "8192 rows": prefillCall(8192),
	} {
		for _, from := range []int{0, 64, 131_072, c.MaxPositions - 8192} {
			t.Run(fmt.Sprintf("%s at %d", name, from), func(t *testing.T) {
				for i, d := range listOf(t, c, call, from) {
					if err := d.Check(); err != nil {
						t.Errorf("dispatch %d: %v", i, err)
					}
					if threadgroups := d.Grid[0] * d.Grid[1] * d.Grid[2]; threadgroups < 2 && streams(d) {
						t.Errorf("dispatch %d, %s, streams weights in one threadgroup", i, d.Kernel)
					}
					for _, b := range d.Buffers {
						if most := (paper{}).MaxBuffer(); b.Buffer.Size > most {
							t.Errorf("dispatch %d, %s: %s has %d bytes, want at most %d", i, d.Kernel, b.Buffer.Name, b.Buffer.Size, most)
						}
					}
				}
			})
		}
	}
}

// streams reports whether a dispatch reads a matrix of weights as a whole.
func streams(d Dispatch) bool {
	switch {
	case strings.HasPrefix(d.Kernel.Name, "project"), strings.HasPrefix(d.Kernel.Name, "matmul"), strings.HasPrefix(d.Kernel.Name, "expert"):
		return true
	}
	return slices.Contains([]string{"head", "route_normed", "route_rows_logits"}, d.Kernel.Name)
}

// TestFlops counts the projections of a prefill, the head left out, against what
// the model's dimensions make, and what tiles are padded with.
func TestFlops(t *testing.T) {
	const rows, formula = 2048, 4.873e9
	c := checkpoint.Published
	var useful, padded float64
	for _, d := range listOf(t, c, prefillCall(rows), 0) {
		arg := func(i int) float64 { return float64(binary.LittleEndian.Uint32(d.Args[4*i:])) }
		switch name := d.Kernel.Name; {
		case strings.HasPrefix(name, "matmul"), name == "route_rows_logits":
			useful += 2 * arg(0) * arg(1) * arg(2)
			padded += 2 * float64(d.Grid[0]*matmulOutputs) * float64(d.Grid[1]*matmulRows) * arg(1)
		case name == "expert_gate_up_rows", name == "expert_down_rows":
			useful += 2 * rows * float64(c.ExpertsPerToken) * arg(0) * arg(1)
			padded += 2 * float64(uniformTiles(rows, c)*groupRows) * arg(0) * arg(1)
		}
	}
	if ratio := useful / rows / formula; ratio < 0.98 || ratio > 1.02 {
		t.Errorf("%.3f GFLOP a token, want %.3f within 2 %%", useful/rows/1e9, formula/1e9)
	}
	if waste := padded/useful - 1; waste > 0.25 {
		t.Errorf("tiles are padded by %.1f %%, want at most 25 %%", 100*waste)
	}
	t.Logf("%.3f GFLOP a token, tiles padded by %.1f %%", useful/rows/1e9, 100*(padded/useful-1))
}

// uniformTiles returns the tiles of experts that uniform routing of rows needs.
func uniformTiles(rows int, c checkpoint.Config) int {
	r := rand.New(rand.NewPCG(1, 2))
	counts := make([]int, c.Experts)
	for range rows {
		for _, e := range r.Perm(c.Experts)[:c.ExpertsPerToken] {
			counts[e]++
		}
	}
	tiles := 0
	for _, n := range counts {
		tiles += ceil(n, groupRows)
	}
	return tiles
}
