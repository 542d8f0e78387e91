//go:build darwin || freebsd || linux

package metal

import (
	"math"
	"testing"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/metal/emulator"
)

// twoLayers has one layer of each kind at real dimensions.
func twoLayers() checkpoint.Config {
	c := checkpoint.Published
	c.Layers, c.FullAttentionInterval = 2, 2
	return c
}

// TestTraffic measures what a decode step reads and writes of weights and state,
// in one layer of each kind and the head, and compares it with the bytes that
// the design counts: everything once.
func TestTraffic(t *testing.T) {
	if testing.Short() {
		t.Skip("slow")
	}
	m, err := emulator.OpenTraced(built(t, "libcalla-traced.so"))
	if err != nil {
		t.Fatal(err)
	}
	const (
		context = 207 // tokens before the step: with its own, whole blocks of keys
		// Bytes of the published checkpoint, and of a state.
		deltaMixer, attentionMixer = 19_014_016, 15_336_448
		expert                     = 1_769_472
		router                     = 257 * (2048 + 2048/64*4)
		norms                      = 2 * 2048 * 2
		moe                        = 9*expert + router + norms
		recurrent                  = 32 * 128 * 128 * 4
		conv                       = 3 * 8192 * 2
		token                      = 2 * 2 * 256 * 2
	)
	for _, part := range []struct {
		name    string
		encode  func(*pass)
		weights string
		want    float64 // of weights
		states  float64 // loaded and stored
		twice   bool    // a fault that must show
	}{
		{"delta layer", func(p *pass) { p.DeltaNet(0); p.MoE(0) }, "layer0", deltaMixer + moe, 2 * (recurrent + conv), false},
		{"attention layer", func(p *pass) { p.Attention(1); p.MoE(1) }, "layer1", attentionMixer + moe, (context + 2) * token, false},
		{"head", func(p *pass) { p.Head() }, "head", 286_064_640 + 2048*2, 0, false},
		{"a matrix read twice", func(p *pass) {
			p.DeltaNet(0)
			p.MoE(0)
			p.ProjectAdd(p.scratch.mixed, p.layers[0].out, p.scratch.h)
		}, "layer0", deltaMixer + moe, 2 * (recurrent + conv), true},
	} {
		t.Run(part.name, func(t *testing.T) {
			distinct, total := tracedStep(t, m, context, part.weights, part.encode)
			want := part.want + part.states
			t.Logf("%.0f bytes touched, %.0f in all; the formula has %.0f", distinct, total, want)
			if math.Abs(distinct-want) > 0.03*want {
				t.Errorf("%.0f distinct bytes, want %.0f within 3 %%", distinct, want)
			}
			if over := math.Abs(total-want) > 0.03*want; over != part.twice {
				t.Errorf("%.0f bytes in all, want %.0f within 3 %%: %v, want %v", total, want, !over, !part.twice)
			}
		})
	}
}

// tracedStep runs a part of a decode step on weights of zero, and returns the
// bytes that it loads of one buffer of weights, and loads and stores of state.
func tracedStep(t *testing.T, m *emulator.Traced, context int, of string, encode func(*pass)) (distinct, total float64) {
	t.Helper()
	c := twoLayers()
	w := &weights{
		device: New(NewEmulated(m, emulator.Schedule{}), Options{}), config: c, shapes: newShapes(c),
		frequencies: ropeFrequencies(c.RotaryDims, c.RopeTheta),
	}
	defer w.Close()
	if err := newPlan(w, fictitious(c)).allocate(); err != nil {
		t.Fatal(err)
	}
	if err := w.ring.allocate(w.device.driver); err != nil {
		t.Fatal(err)
	}
	st, err := w.NewState(1024)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	s := st.(*State)
	s.length = context
	begun, err := w.Begin(s, backend.Call{Phase: backend.Decode, Tokens: []int32{1}})
	if err != nil {
		t.Fatal(err)
	}
	watched := []*Buffer{s.recurrent, s.conv, w.scratch.conv, s.kv[0]}
	for _, b := range w.buffers {
		if b.Name == of {
			watched = append(watched, b)
		}
	}
	defer m.Forget()
	for _, b := range append(watched, w.scratch.buffers...) {
		clear(b.Bytes)
	}
	for _, b := range watched {
		m.Watch(b.Native.(*emulator.Buffer))
	}
	encode(begun.(*pass))
	step, err := begun.Commit()
	if err == nil {
		err = step.Wait()
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range watched {
		got := m.Traffic(b.Native.(*emulator.Buffer))
		t.Logf("%-10s loaded %d, %d in all; stored %d, %d in all", b.Name, got.Loaded, got.Loads, got.Stored, got.Stores)
		distinct += float64(got.Loaded + got.Stored)
		total += float64(got.Loads + got.Stores)
	}
	return distinct, total
}
