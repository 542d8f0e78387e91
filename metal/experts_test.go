package metal

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"calla/core/conform"
	"calla/core/cpu"
	"calla/core/tensor"
	"calla/metal/emulator"
)

// expertsCase is a mixture of experts.
type expertsCase struct{ hidden, experts, chosen, expertDim, sharedDim int }

func (c expertsCase) shape() ExpertsShape {
	return ExpertsShape{c.hidden, c.experts, c.chosen, c.expertDim, c.sharedDim, eps}
}

// mixtureTwin is the plain twin's matrices; stacks are lists.
type mixtureTwin struct {
	s                                ExpertsShape
	norm                             []float32
	gate, up, down                   []cpu.Matrix
	sharedGate, sharedUp, sharedDown cpu.Matrix
}

func newMixtureTwin(s ExpertsShape, src operands) *mixtureTwin {
	m := &mixtureTwin{
		s: s, norm: src.around(s.Hidden, 1, 0.2),
		sharedGate: src.matrix(s.SharedDim, s.Hidden, 4), sharedUp: src.matrix(s.SharedDim, s.Hidden, 4),
		sharedDown: src.matrix(s.Hidden, s.SharedDim, 4),
	}
	for range s.Experts {
		m.gate = append(m.gate, src.matrix(s.ExpertDim, s.Hidden, 4))
		m.up = append(m.up, src.matrix(s.ExpertDim, s.Hidden, 4))
		m.down = append(m.down, src.matrix(s.Hidden, s.ExpertDim, 4))
	}
	return m
}

// matrices brings the experts to the device.
func (m *mixtureTwin) matrices(r *rig) Experts {
	var gateUp, down []byte
	x := Experts{SharedGateUp: r.matrices(true, m.sharedGate, m.sharedUp), SharedDown: r.matrix(m.sharedDown)}
	for e := range m.gate {
		x.GateUp, x.Down = r.matrices(true, m.gate[e], m.up[e]), r.matrix(m.down[e])
		gateUp, down = append(gateUp, x.GateUp.At.Buffer.Bytes...), append(down, x.Down.At.Buffer.Bytes...)
	}
	x.GateUp.At, x.Down.At = r.buffer(len(gateUp)), r.buffer(len(down))
	copy(x.GateUp.At.Buffer.Bytes, gateUp)
	copy(x.Down.At.Buffer.Bytes, down)
	return x
}

// row adds the mixture of x to h, the experts chosen by logits, of which the
// last is the shared expert's.
func (m *mixtureTwin) row(h, x, logits []float32) {
	s := m.s
	experts, weights := make([]int32, s.Chosen), make([]float32, s.Chosen)
	cpu.Route(experts, weights, logits[:s.Experts])
	mix := []float32{tensor.RoundBF16(logits[s.Experts])}
	cpu.Sigmoid(cpu.BF16, mix)
	out := make([]float32, s.Hidden)
	add := func(gate, up, down cpu.Matrix, weight float32) {
		g, u, y := make([]float32, gate.Out), make([]float32, gate.Out), make([]float32, s.Hidden)
		cpu.QMatVec(cpu.BF16, g, gate, x)
		cpu.QMatVec(cpu.BF16, u, up, x)
		cpu.SwiGLU(cpu.BF16, g, u)
		cpu.QMatVec(cpu.BF16, y, down, g)
		for i, v := range y {
			out[i] += weight * v
		}
	}
	for k, e := range experts {
		add(m.gate[e], m.up[e], m.down[e], weights[k])
	}
	add(m.sharedGate, m.sharedUp, m.sharedDown, mix[0])
	for i, v := range out {
		out[i] = tensor.RoundBF16(v)
	}
	cpu.Add(cpu.BF16, h, out)
}

// expertsEps: an inner value that rounds the other way moves an output by a
// fraction of its size, and h may be larger than their sum.
const expertsEps = 0.01

var expertsCases = []struct {
	name string
	c    expertsCase
	tie  bool
}{
	{"smallest", expertsCase{64, 4, 1, 64, 64}, false},
	{"shared one is larger", expertsCase{128, 16, 4, 64, 128}, false},
	{"shared one is smaller", expertsCase{64, 8, 3, 192, 64}, false},
	{"all chosen", expertsCase{64, 4, 4, 64, 64}, false},
	{"equal logits", expertsCase{64, 40, 4, 64, 64}, true},
	{"real choice of experts", expertsCase{128, 256, 8, 64, 64}, false},
	{"real widths", expertsCase{2048, 8, 8, 512, 512}, false},
}

func TestExpertsStep(t *testing.T) {
	for _, tt := range expertsCases {
		t.Run(tt.name, func(t *testing.T) {
			everyOrder(t, sized(tt.c.experts <= 16 && tt.c.hidden < 1000, tt.c.hidden > 1000), func(t *testing.T, r *rig) {
				s, m := tt.c.shape(), newMixtureTwin(tt.c.shape(), r.source)
				h, logits := r.source.normal(s.Hidden, 1), r.source.normal(align(s.Experts+1, tileRows), 2)
				if tt.tie {
					clear(logits[:s.Experts])
				}
				x := make([]float32, s.Hidden)
				cpu.RMSNorm(cpu.BF16, x, h, m.norm, eps)
				on, device, router := r.bf16s(h), m.matrices(r), r.f32s(logits)
				inner := r.buffer(2 * s.inner())
				r.enc.ExpertsGateUp(s, device, on, r.bf16s(m.norm), router, inner)
				r.enc.ExpertsDown(s, device, router, inner, on)
				r.run()
				m.row(h, x, logits)
				within(t, "h", read16(on, s.Hidden), h, 1, expertsEps)
			})
		})
	}
}

// rowsRouting makes the device's memory of a prefill's routing.
func (r *rig) rowsRouting(s ExpertsShape, rows int, logits []float32) Routing {
	return Routing{
		Logits: r.f32s(logits), Experts: r.buffer(4 * rows * s.Chosen), Weights: r.buffer(4 * rows * (s.Chosen + 1)),
		Counts: r.buffer(4 * ceil(rows, routeBlock) * s.Experts), Tiles: r.buffer(12 * s.mostTiles(rows)),
		Entries: r.buffer(4 * rows * s.Chosen),
	}
}

// rowsCase is a mixture of rows; choose, where set, changes a row's logits.
type rowsCase struct {
	name   string
	rows   int
	c      expertsCase
	choose func(logits []float32, row int)
}

func rowsCases() []rowsCase {
	usual := expertsCase{128, 16, 4, 64, 128}
	cases := []rowsCase{
		{"two rows of the smallest", 2, expertsCase{64, 4, 2, 64, 64}, nil},
		{"all rows to one expert", 35, expertsCase{64, 8, 1, 64, 64}, func(l []float32, _ int) { l[5] = 50 }},
		{"all rows to the same experts", 33, usual, func(l []float32, _ int) { copy(l, []float32{9, 8, 7, 6}) }},
		{"experts with none", 31, usual, func(l []float32, row int) { clear(l[8:16]); copy(l, []float32{5, 4, 3, 2, 1}) }},
		{"an expert each", 64, expertsCase{64, 64, 1, 64, 64}, func(l []float32, row int) { l[row] = 50 }},
		{"a tile of outputs and a half", 17, expertsCase{192, 8, 2, 192, 64}, nil},
		{"256 experts", 130, expertsCase{64, 256, 8, 64, 64}, nil},
	}
	for _, rows := range conform.Ragged {
		cases = append(cases, rowsCase{fmt.Sprintf("%d rows", rows), rows, usual, nil})
	}
	return cases
}

func TestExpertRows(t *testing.T) {
	for _, tt := range rowsCases() {
		t.Run(tt.name, func(t *testing.T) {
			test := func(t *testing.T, r *rig) { testExpertRows(t, r, tt) }
			everyOrder(t, sized(tt.rows == 2, tt.rows > 3), test)
			onMatrixUnits(t, tt.rows, test)
		})
	}
}

func testExpertRows(t *testing.T, r *rig, tt rowsCase) {
	s, m, rows := tt.c.shape(), newMixtureTwin(tt.c.shape(), r.source), tt.rows
	stride := align(s.Experts+1, tileRows)
	x, h := r.source.normal(rows*s.Hidden, 1), r.source.normal(rows*s.Hidden, 1)
	logits := r.source.normal(rows*stride, 2)
	if tt.choose != nil {
		for i := range rows {
			tt.choose(logits[i*stride:], i)
		}
	}
	in, on, device, routing := r.bf16s(x), r.bf16s(h), m.matrices(r), r.rowsRouting(s, rows, logits)
	sharedInner, shared := r.buffer(2*rows*s.SharedDim), r.buffer(2*rows*s.Hidden)
	inner, y := r.buffer(2*rows*s.Chosen*s.ExpertDim), r.buffer(2*rows*s.Chosen*s.Hidden)
	r.enc.MatmulSwiGLU(in, device.SharedGateUp, sharedInner, rows)
	r.enc.Matmul(sharedInner, device.SharedDown, shared, rows)
	r.enc.SortRows(s, routing, rows)
	r.enc.ExpertRows(s, device, routing, in, inner, y, rows)
	r.enc.CombineRows(s, routing.Weights, y, shared, on, rows)
	r.run()
	got := read16(on, rows*s.Hidden)
	for i := range rows {
		want := h[i*s.Hidden:][:s.Hidden]
		m.row(want, x[i*s.Hidden:][:s.Hidden], logits[i*stride:][:s.Experts+1])
		within(t, fmt.Sprintf("row %d", i), got[i*s.Hidden:][:s.Hidden], want, 1, expertsEps)
	}
	checkEntries(t, routing, s, rows)
}

// checkEntries looks at the sorted choices: every one there once, experts
// ascending, rows ascending within.
func checkEntries(t *testing.T, r Routing, s ExpertsShape, rows int) {
	t.Helper()
	experts, entries := integers(r.Experts, rows*s.Chosen), integers(r.Entries, rows*s.Chosen)
	want := make([]uint32, rows*s.Chosen)
	for i := range want {
		want[i] = uint32(i)
	}
	slices.SortStableFunc(want, func(a, b uint32) int { return int(experts[a]) - int(experts[b]) })
	if !slices.Equal(entries, want) {
		t.Errorf("entries %v, want %v", entries, want)
	}
}

func integers(b Binding, n int) []uint32 {
	out := make([]uint32, n)
	for i, v := range read32(b, n) {
		out[i] = math.Float32bits(v)
	}
	return out
}

// TestOps runs the tables of operations that the device has on their own, by lot.
func TestOps(t *testing.T) {
	r := newRig(t, openLibrary(t), emulator.Schedule{Order: 5, Workers: 2})
	conform.Ops(t, conform.Operations{
		Rounded: true,
		RMSNorm: func(y, x, w []float32, eps float32) {
			out := r.buffer(2 * len(y))
			r.enc.NormaliseRows(r.bf16s(x), r.bf16s(w), out, len(x)/len(w), len(w), eps)
			r.run()
			copy(y, read16(out, len(y)))
		},
		QMatMul: func(y []float32, w conform.Matrix, x []float32, rows int) {
			m := r.matrix(cpu.Matrix(w))
			wide := m.tiles() * tileRows
			out := r.buffer(4 * rows * wide)
			var got []float32
			if w.Bits == 8 {
				r.enc.RouteRowsLogits(r.bf16s(x), m, out, rows)
				r.run()
				got = read32(out, rows*wide)
			} else {
				r.enc.Matmul(r.bf16s(x), m, out, rows)
				r.run()
				got = read16(out, rows*wide)
			}
			for i := range rows {
				copy(y[i*w.Out:][:w.Out], got[i*wide:])
			}
		},
		Embed: func(h []float32, table conform.Matrix, tokens []int32) {
			ids := make([]uint32, len(tokens))
			for i, v := range tokens {
				ids[i] = uint32(v)
			}
			out := r.buffer(2 * len(h))
			r.enc.Embed(r.u32s(ids...), r.matrix(cpu.Matrix(table)), out, len(tokens))
			r.run()
			copy(h, read16(out, len(h)))
		},
		Route: func(experts []int32, weights, logits []float32) {
			s := ExpertsShape{Experts: len(logits), Chosen: len(experts)}
			routing := r.rowsRouting(s, 1, append(slices.Clone(logits), 0, 0, 0, 0))
			r.enc.SortRows(s, routing, 1)
			r.run()
			for i, e := range integers(routing.Experts, len(experts)) {
				experts[i] = int32(e)
			}
			copy(weights, read32(routing.Weights, len(weights)))
		},
	})
}
