// Package model is the architecture of Qwen3.6-35B-A3B: which weights of a
// checkpoint play which part, and the order of the blocks in a forward pass.
// The blocks themselves belong to a backend, what is evaluated when to package
// engine. SPEC.md states the model exactly.
package model

import (
	"context"
	"fmt"

	"calla/core/backend"
	"calla/core/checkpoint"
)

// Model is a checkpoint laid out on a device.
type Model struct {
	config  checkpoint.Config
	tokens  int
	weights backend.Weights
}

// Load binds the checkpoint's weights and lays them out on dev. Tokens is how
// many rows of the vocabulary are tokens, 0 for all: padding behind them has no
// logits. It calls progress, where not nil, with bytes done of all. The
// checkpoint must stay open until the model is closed.
func Load(ctx context.Context, dev backend.Device, c *checkpoint.Checkpoint, tokens int, progress func(done, total int64)) (*Model, error) {
	if rows := c.Config().Vocab; tokens < 0 || tokens > rows {
		return nil, fmt.Errorf("model: %d tokens, want at most the vocabulary's %d rows", tokens, rows)
	}
	w, err := dev.Load(ctx, Bind(c, tokens), progress)
	if err != nil {
		return nil, fmt.Errorf("model: load %s on %s: %w", c.Name(), dev.Name(), err)
	}
	m := New(c.Config(), w)
	if tokens > 0 {
		m.tokens = tokens
	}
	return m, nil
}

// New makes a model of weights that lie on a device already, all of whose rows
// are tokens.
func New(c checkpoint.Config, w backend.Weights) *Model {
	return &Model{config: c, tokens: c.Vocab, weights: w}
}

// Config returns the model's dimensions.
func (m *Model) Config() checkpoint.Config { return m.config }

// Tokens returns how many logits a call makes: the vocabulary without padding.
func (m *Model) Tokens() int { return m.tokens }

// Weights returns the model's weights on the device.
func (m *Model) Weights() backend.Weights { return m.weights }

// NewState makes an empty state for at most maxTokens tokens.
func (m *Model) NewState(maxTokens int) (backend.State, error) {
	return m.weights.NewState(maxTokens)
}

// Close gives the device memory back. No state may be in use.
func (m *Model) Close() error { return m.weights.Close() }

// Prefill evaluates prompt tokens after those that s holds. Segments are the
// positions of segment starts, the first at or before s.Len() (see
// backend.Call). Only with head are there logits, those of the last token.
func (m *Model) Prefill(s backend.State, tokens []int32, segments []int, head bool) (backend.Step, error) {
	return m.forward(s, backend.Call{Phase: backend.Prefill, Tokens: tokens, Segments: segments}, head)
}

// Decode evaluates one generated token.
func (m *Model) Decode(s backend.State, token int32) (backend.Step, error) {
	return m.forward(s, backend.Call{Phase: backend.Decode, Tokens: []int32{token}}, true)
}

// Follow evaluates the token of the largest logit of the state's last call. It
// need not wait for that call: the device hands the token on.
func (m *Model) Follow(s backend.State) (backend.Step, error) {
	return m.forward(s, backend.Call{Phase: backend.Decode, Follow: true}, true)
}

func (m *Model) forward(s backend.State, c backend.Call, head bool) (backend.Step, error) {
	p, err := m.weights.Begin(s, c)
	if err != nil {
		return nil, err
	}
	p.Embed()
	for i := range m.config.Layers {
		if m.config.FullAttention(i) {
			p.Attention(i)
		} else {
			p.DeltaNet(i)
		}
		p.MoE(i)
	}
	if head {
		p.Head()
	}
	return p.Commit()
}
