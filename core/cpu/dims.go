package cpu

import "calla/core/checkpoint"

// dims are widths that follow from a configuration.
type dims struct {
	conv        int // channels of the convolution
	deltaKey    int // key heads × key dim
	deltaValue  int // value heads × value dim
	recurrent   int // values of one layer's recurrent state
	query, kv   int // heads × head dim, KV heads × head dim
	deltaLayers int
	fullLayers  int
}

func newDims(c checkpoint.Config) dims {
	d := dims{
		conv:       c.ConvDim(),
		deltaKey:   c.DeltaKeyHeads * c.DeltaKeyDim,
		deltaValue: c.DeltaValueHeads * c.DeltaValueDim,
		recurrent:  c.DeltaValueHeads * c.DeltaValueDim * c.DeltaKeyDim,
		query:      c.Heads * c.HeadDim,
		kv:         c.KVHeads * c.HeadDim,
	}
	for i := range c.Layers {
		if c.FullAttention(i) {
			d.fullLayers++
		} else {
			d.deltaLayers++
		}
	}
	return d
}
