package metal

import (
	"context"
	"fmt"

	"calla/core/backend"
	"calla/core/checkpoint"
)

// weights is a model on a device. A buffer holds one layer; the embedding table
// and the head have their own.
type weights struct {
	device *Device
	config checkpoint.Config
	shapes shapes

	embed, head Matrix
	norm        Binding
	layers      []layer
	buffers     []*Buffer
	bytes       int64

	frequencies []float64 // of rope
	scratch     scratch
	ring        ring
}

// layer holds one layer's weights; index counts the layers of its kind.
type layer struct {
	index               int
	inputNorm, postNorm Binding
	projection          Matrix // all that is made of the normalised row at once
	out                 Matrix
	delta               DeltaWeights
	qNorm, kNorm        Binding
	experts             Experts
}

var _ backend.Weights = (*weights)(nil)

// Load implements backend.Device.
func (d *Device) Load(ctx context.Context, b *backend.Binding, progress func(done, total int64)) (backend.Weights, error) {
	if err := supported(b.Config); err != nil {
		return nil, err
	}
	w := &weights{
		device: d, config: b.Config, shapes: newShapes(b.Config),
		frequencies: ropeFrequencies(b.Config.RotaryDims, b.Config.RopeTheta),
	}
	if err := d.driver.Prepare(w.shapes.kernels(d.driver.MatrixUnits())); err != nil {
		return nil, err
	}
	plan := newPlan(w, b)
	if err := plan.allocate(); err != nil {
		return nil, w.abandon(err)
	}
	if err := plan.load(ctx, progress); err != nil {
		return nil, w.abandon(err)
	}
	if err := w.ring.allocate(d.driver); err != nil {
		return nil, w.abandon(err)
	}
	return w, nil
}

// abandon frees what a failed load has taken.
func (w *weights) abandon(err error) error {
	w.Close()
	return err
}

// supported says whether the kernels have a model's shapes.
func supported(c checkpoint.Config) error {
	group := c.Heads / c.KVHeads
	for _, s := range []struct {
		what string
		ok   bool
		got  any
		want string
	}{
		{"head dim", c.HeadDim == 64 || c.HeadDim == 256, c.HeadDim, "64 or 256"},
		{"query heads a KV head", group >= 1 && group <= queryRows, group, "at most 8"},
		{"delta key dim", c.DeltaKeyDim == 64 || c.DeltaKeyDim == 128, c.DeltaKeyDim, "64 or 128"},
		{"delta value dim", c.DeltaValueDim == 64 || c.DeltaValueDim == 128, c.DeltaValueDim, "64 or 128"},
		{"convolution taps", c.ConvTaps == 4, c.ConvTaps, "4"},
		{"experts", c.Experts <= 256 && c.Experts%tileRows == 0, c.Experts, "a multiple of 4, at most 256"},
		{"experts a token", c.ExpertsPerToken < simdWidth, c.ExpertsPerToken, "at most 31"},
		{"hidden size", c.Hidden%groupColumns == 0, c.Hidden, "a multiple of 64"},
		{"expert dim", c.ExpertDim%groupColumns == 0, c.ExpertDim, "a multiple of 64"},
		{"shared expert dim", c.SharedExpertDim%groupColumns == 0, c.SharedExpertDim, "a multiple of 64"},
	} {
		if !s.ok {
			return fmt.Errorf("metal: %s %v, the kernels have %s", s.what, s.got, s.want)
		}
	}
	return nil
}

// Bytes implements backend.Weights. Nothing stays in the checkpoint's files.
func (w *weights) Bytes() (all, mapped int64) { return w.bytes, 0 }

// Close implements backend.Weights.
func (w *weights) Close() error {
	err := w.ring.drain()
	w.ring.free(w.device.driver)
	w.scratch.free(w.device.driver)
	for _, b := range w.buffers {
		w.device.driver.Free(b)
	}
	w.buffers, w.layers = nil, nil
	return err
}
