package metal

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"calla/core/checkpoint"
)

// shapes are the dimensions of a model's layers, and where the parts of a
// projected row lie: each starts on a whole tile.
type shapes struct {
	delta     DeltaShape
	attention AttentionShape
	experts   ExpertsShape
	hidden    int
	vocab     int

	deltaLayers, fullLayers int
}

func newShapes(c checkpoint.Config) shapes {
	s := shapes{
		hidden: c.Hidden, vocab: c.Vocab,
		delta: DeltaShape{
			KeyHeads: c.DeltaKeyHeads, ValueHeads: c.DeltaValueHeads,
			KeyDim: c.DeltaKeyDim, ValueDim: c.DeltaValueDim, Eps: c.NormEps,
		},
		attention: AttentionShape{
			Heads: c.Heads, KVHeads: c.KVHeads, Dim: c.HeadDim, Rotary: c.RotaryDims, Eps: c.NormEps,
			K: 2 * c.Heads * c.HeadDim,
		},
		experts: ExpertsShape{
			Hidden: c.Hidden, Experts: c.Experts, Chosen: c.ExpertsPerToken,
			ExpertDim: c.ExpertDim, SharedDim: c.SharedExpertDim, Eps: c.NormEps,
		},
	}
	d, a := &s.delta, &s.attention
	d.Z = d.Channels()
	d.B = d.Z + d.values()
	d.A = d.B + align(d.ValueHeads, tileRows)
	d.Width = d.A + align(d.ValueHeads, tileRows)
	a.V = a.K + a.KVHeads*a.Dim
	a.Width = a.V + a.KVHeads*a.Dim
	for i := range c.Layers {
		if c.FullAttention(i) {
			s.fullLayers++
		} else {
			s.deltaLayers++
		}
	}
	return s
}

// kernels returns all kernels that the model is run with.
func (s shapes) kernels(matrixUnits bool) []Kernel {
	units := Encoder{tensor: matrixUnits}
	list := []Kernel{
		projection("project_normed", s.hidden), projection("route_normed", s.hidden), projection("head", s.hidden),
		projection("project_add", s.delta.values()), projection("project_add", s.attention.Heads*s.attention.Dim),
		s.experts.kernel("experts_gate_up"), s.experts.kernel("experts_down"), s.delta.gatedNorm(),
	}
	for _, n := range []string{
		"embed", "normalise_rows", "argmax", "matmul", "matmul_add", "matmul_swiglu", "route_rows_logits", "route_rows",
		"count_experts", "place_experts", "scatter_experts", "expert_gate_up_rows", "expert_down_rows", "combine_rows",
	} {
		list = append(list, units.product(n))
	}
	for _, n := range []string{"delta_step", "delta_prepare", "delta_pairs", "delta_chunk"} {
		list = append(list, s.delta.kernel(n))
	}
	for _, n := range []string{"attention_prepare", "attend_rows", "attend_spans", "attend_merge"} {
		list = append(list, s.attention.kernel(n))
	}
	slices.SortFunc(list, func(a, b Kernel) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), slices.Compare(a.Constants[:], b.Constants[:]))
	})
	return slices.Compact(list)
}

// recurrentBytes and convBytes are those of one delta layer's state.
func (s shapes) recurrentBytes() int {
	return 4 * s.delta.ValueHeads * s.delta.ValueDim * s.delta.KeyDim
}

func (s shapes) convBytes() int { return (convTaps - 1) * s.delta.Channels() * 2 }

const convTaps = 4

// ropeFrequencies returns theta^(-2i/dims) for the pairs of a head.
func ropeFrequencies(dims int, theta float64) []float64 {
	f := make([]float64, dims/2)
	for i := range f {
		f[i] = math.Pow(theta, -2*float64(i)/float64(dims))
	}
	return f
}
