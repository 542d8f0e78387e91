//go:build linux

package metal

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/conform"
	"calla/core/cpu"
	"calla/core/model"
	"calla/metal/cuda"
)

// loadRandom lays random weights out on a device for the length of the test.
func loadRandom(t *testing.T, dev backend.Device, c checkpoint.Config) *model.Model {
	t.Helper()
	ckpt, err := checkpoint.Open(randomCheckpoint(t, c), checkpoint.Options{AnySize: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(context.Background(), dev, ckpt, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close(); ckpt.Close() })
	return m
}

// TestCUDAAgainstCPU compares four layers at real dimensions with the CPU
// backend: a prompt of several segments and tokens after it.
func TestCUDAAgainstCPU(t *testing.T) {
	d := openCUDA(t)
	dir := os.Getenv("CALLA_SLICE")
	if dir == "" {
		t.Skip("CALLA_SLICE names no checkpoint; core/conform/testdata/slice/README.md says how to make one")
	}
	prompt := make([]int32, 300)
	for i := range prompt {
		prompt[i] = int32(mix(uint64(i)) % 4096)
	}
	run := func(dev backend.Device) (all [][]float32) {
		m := conform.Load(t, dev, checkpoint.Dir(dir))
		s, err := m.NewState(400)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		step, err := m.Prefill(s, prompt, []int{0, 40, 41}, true)
		for i := 0; i < 8; i++ {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, slices.Clone(step.Logits()))
			step, err = m.Decode(s, prompt[i])
		}
		return all
	}
	got, want := run(New(lent{d}, Options{})), run(cpu.New(cpu.Options{}))
	for i := range want {
		rms := relativeRMS(got[i], want[i])
		t.Logf("step %d: relative RMS error of the logits %.4f", i, rms)
		// Four layers, each of which rounds to bfloat16 in other places.
		if !(rms < 0.05) {
			t.Errorf("step %d: relative RMS error of the logits %.4f, want below 0.05", i, rms)
		}
	}
}

func relativeRMS(got, want []float32) float64 {
	var diff, norm float64
	for i, w := range want {
		d := float64(got[i]) - float64(w)
		diff, norm = diff+d*d, norm+float64(w)*float64(w)
	}
	return math.Sqrt(diff / norm)
}

// cudaReport is what TestCUDAWhole measures.
type cudaReport struct {
	GPU       string
	CopyGBs   float64 // read and written, of a copy within the GPU
	Decode    []decodeTime
	Prefill   []prefillTime
	Kernels   []kernelTime // of a decode step
	Registers map[string][2]int
}

type decodeTime struct {
	Context                     int
	TokensPerSecond             float64 // as the driver launches it
	GraphMillis, LaunchedMillis float64
}

type prefillTime struct {
	From, Rows      int
	TokensPerSecond float64
}

type kernelTime struct {
	Context int
	Kernel  string
	Grid    [3]uint32
	Count   int
	Micros  float64 // of one
	Bytes   int64   // that one must read and write; 0: of no account
	GBs     float64
	Share   float64 // of the copy's bandwidth
}

// TestCUDAWhole runs the whole model at full size with random weights, and
// measures. The report goes to the folder that CALLA_REPORT names.
func TestCUDAWhole(t *testing.T) {
	d := openCUDA(t)
	out := os.Getenv("CALLA_REPORT")
	if out == "" {
		t.Skip("CALLA_REPORT names no folder for the report")
	}
	b := &cudaBench{t: t, d: d, report: cudaReport{GPU: d.Name(), Registers: map[string][2]int{}}}
	b.copySpeed()
	c := checkpoint.Published
	b.m = loadRandom(t, New(lent{d}, Options{Record: func(l *List) { b.last = List{slices.Clone(l.Dispatches)} }}), c)
	b.w = b.m.Weights().(*weights)
	defer b.write(out)
	if os.Getenv("CALLA_CUDA_SMALL") != "" {
		b.decode(256)
		return
	}
	for _, n := range []int{256, 8192, 32_768} {
		b.decode(n)
	}
	for _, x := range []struct{ from, rows int }{{0, 512}, {0, 2048}, {30_720, 2048}} {
		b.prefill(x.from, x.rows)
	}
	for k, f := range d.loaded {
		b.report.Registers[k.String()] = [2]int{f.Registers, f.LocalBytes}
	}
}

// cudaBench measures one model on the GPU.
type cudaBench struct {
	t      *testing.T
	d      *CUDA
	m      *model.Model
	w      *weights
	last   List // that was committed
	report cudaReport
}

func (b *cudaBench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// timed returns how long the GPU takes over what f launches.
func (b *cudaBench) timed(f func()) time.Duration {
	b.t.Helper()
	from, err := b.d.gpu.Record()
	b.must(err)
	f()
	to, err := b.d.gpu.Record()
	b.must(err)
	b.must(to.Wait())
	took, err := to.Since(from)
	b.must(err)
	from.Free()
	to.Free()
	return took
}

// median times f a few times, after once to warm up.
func (b *cudaBench) median(f func()) time.Duration {
	f()
	var all []time.Duration
	for range 5 {
		all = append(all, b.timed(f))
	}
	slices.Sort(all)
	return all[2]
}

func (b *cudaBench) copySpeed() {
	const bytes = 4 << 30
	from, err := b.d.gpu.Alloc(bytes)
	b.must(err)
	to, err := b.d.gpu.Alloc(bytes)
	b.must(err)
	took := b.median(func() { b.must(b.d.gpu.Copy(to, from, bytes)) })
	b.report.CopyGBs = 2 * bytes / took.Seconds() / 1e9
	b.must(b.d.gpu.Free(from))
	b.must(b.d.gpu.Free(to))
}

// state makes a state that has n tokens, keys and values random.
func (b *cudaBench) state(n, more int) *State {
	st, err := b.m.NewState(n + more)
	b.must(err)
	s := st.(*State)
	if n == 0 {
		return s
	}
	b.must(s.grow(n))
	bytes := make([]byte, n*b.w.shapes.attention.tokenBytes())
	filler("keys.norm", []int64{1})(bytes, 0)
	for _, kv := range s.kv {
		b.must(b.d.Write(kv.at(0), bytes))
	}
	s.length = n
	return s
}

// decode measures tokens after n others, whole steps and kernel by kernel.
func (b *cudaBench) decode(n int) {
	const tokens = 64
	s := b.state(n, 2*tokens)
	defer s.Close()
	step, err := b.m.Decode(s, 1)
	b.must(err)
	follow := func() {
		for range tokens / 2 {
			step, err = b.m.Follow(s)
			b.must(err)
		}
		b.must(step.Wait())
	}
	follow()
	start := time.Now()
	follow()
	took := time.Since(start).Seconds()
	if step.Argmax() < 0 {
		b.t.Errorf("logits after %d tokens are no numbers", s.length)
	}
	list := b.last
	x := decodeTime{Context: n, TokensPerSecond: tokens / 2 / took}
	launched := b.median(func() { b.launch(list.Dispatches) })
	x.LaunchedMillis = launched.Seconds() * 1e3
	x.GraphMillis = b.graph(list.Dispatches, 1).Seconds() * 1e3
	b.report.Decode = append(b.report.Decode, x)
	b.kernels(n, list.Dispatches)
}

func (b *cudaBench) launch(list []Dispatch) {
	for i := range list {
		b.must(b.d.launch(&list[i]))
	}
}

// graph returns what a list takes without the processor's part in launching it.
func (b *cudaBench) graph(list []Dispatch, times int) time.Duration {
	var g *cuda.Graph
	g, err := b.d.gpu.Capture(func() error {
		for range times {
			b.launch(list)
		}
		return nil
	})
	b.must(err)
	defer g.Free()
	return b.median(func() { b.must(g.Launch()) }) / time.Duration(times)
}

// kernels measures the dispatches of a step that have kernel and grid in common,
// one after another: each layer's has other weights.
func (b *cudaBench) kernels(context int, list []Dispatch) {
	var names []string
	same := map[string][]Dispatch{}
	for _, x := range list {
		name := fmt.Sprint(x.Kernel, x.Grid)
		if same[name] == nil {
			names = append(names, name)
		}
		same[name] = append(same[name], x)
	}
	for _, name := range names {
		group := same[name]
		took := b.graph(group, max(1, 40/len(group)))
		k := kernelTime{
			Context: context, Kernel: group[0].Kernel.String(), Grid: group[0].Grid, Count: len(group),
			Micros: took.Seconds() * 1e6 / float64(len(group)), Bytes: b.bytes(group[0], context),
		}
		k.GBs = float64(k.Bytes) / k.Micros / 1e3
		k.Share = k.GBs / b.report.CopyGBs
		b.report.Kernels = append(b.report.Kernels, k)
	}
}

// bytes returns what a dispatch must read and write of weights and states.
func (b *cudaBench) bytes(x Dispatch, context int) int64 {
	s, e := b.w.shapes, b.w.shapes.experts
	tiles := func(rows, columns, bits int) int64 {
		return int64(ceil(rows, tileRows)) * int64(tileBytes(columns, bits))
	}
	columns := int(x.Kernel.Constants[0])
	switch name := x.Kernel.Name; {
	case name == "project_normed" || name == "project_add":
		return int64(binary.LittleEndian.Uint32(x.Args)) * int64(tileBytes(columns, 4))
	case name == "route_normed":
		return int64(binary.LittleEndian.Uint32(x.Args)) * int64(tileBytes(columns, 8))
	case name == "head":
		return tiles(s.vocab, columns, 4) + 4*int64(s.vocab)
	case name == "experts_gate_up":
		return int64(e.Chosen)*tiles(2*e.ExpertDim, e.Hidden, 4) + tiles(2*e.SharedDim, e.Hidden, 4)
	case name == "experts_down":
		return int64(e.Chosen)*tiles(e.Hidden, e.ExpertDim, 4) + tiles(e.Hidden, e.SharedDim, 4)
	case strings.HasPrefix(name, "delta_step"):
		return int64(2 * (s.recurrentBytes() + s.convBytes()))
	case strings.HasPrefix(name, "attend_spans"):
		return int64((context + 1) * s.attention.tokenBytes())
	}
	return 0
}

// prefill measures a call of rows rows after from others.
func (b *cudaBench) prefill(from, rows int) {
	tokens := make([]int32, rows)
	for i := range tokens {
		tokens[i] = int32(mix(uint64(i)) % uint64(b.w.shapes.vocab))
	}
	var all []float64
	for range 3 {
		s := b.state(from, rows)
		start := time.Now()
		step, err := b.m.Prefill(s, tokens, []int{0}, true)
		b.must(err)
		b.must(step.Wait())
		all = append(all, float64(rows)/time.Since(start).Seconds())
		if step.Argmax() < 0 {
			b.t.Errorf("logits of a prefill of %d rows are no numbers", rows)
		}
		if len(all) == 3 {
			b.prefillKernels(from, rows)
		}
		s.Close()
	}
	b.report.Prefill = append(b.report.Prefill, prefillTime{from, rows, all[2]})
}

// prefillKernels logs what the kernels of the last call take, the longest first.
func (b *cudaBench) prefillKernels(from, rows int) {
	took := map[string]time.Duration{}
	count := map[string]int{}
	for i := range b.last.Dispatches {
		x := &b.last.Dispatches[i]
		took[x.Kernel.Name] += b.timed(func() { b.must(b.d.launch(x)) })
		count[x.Kernel.Name]++
	}
	var names []string
	for n := range took {
		names = append(names, n)
	}
	slices.SortFunc(names, func(x, y string) int { return int(took[y] - took[x]) })
	for _, n := range names {
		b.t.Logf("prefill of %d after %d: %-24s %3d × %8.1f µs", rows, from, n, count[n], took[n].Seconds()*1e6/float64(count[n]))
	}
}

// write writes the report as JSON and as a text table.
func (b *cudaBench) write(dir string) {
	text, err := json.MarshalIndent(b.report, "", " ")
	b.must(err)
	b.must(os.WriteFile(filepath.Join(dir, "cuda.json"), append(text, '\n'), 0o644))
	var s strings.Builder
	r := b.report
	fmt.Fprintf(&s, "%s\ncopy %.0f GB/s\n\n", r.GPU, r.CopyGBs)
	for _, x := range r.Decode {
		fmt.Fprintf(&s, "decode at %6d: %6.1f tokens/s; a step launched %.3f ms, as a graph %.3f ms\n", x.Context, x.TokensPerSecond, x.LaunchedMillis, x.GraphMillis)
	}
	for _, x := range r.Prefill {
		fmt.Fprintf(&s, "prefill of %4d at %6d: %6.0f tokens/s\n", x.Rows, x.From, x.TokensPerSecond)
	}
	fmt.Fprintln(&s)
	for _, k := range r.Kernels {
		fmt.Fprintf(&s, "%6d %-36s %-12s %3d × %8.2f µs %9.3f MB %7.0f GB/s %5.1f %%\n", k.Context, k.Kernel, strings.Trim(fmt.Sprint(k.Grid), "[]"), k.Count, k.Micros, float64(k.Bytes)/1e6, k.GBs, 100*k.Share)
	}
	b.t.Log("\n" + s.String())
	b.must(os.WriteFile(filepath.Join(dir, "cuda.txt"), []byte(s.String()), 0o644))
}
