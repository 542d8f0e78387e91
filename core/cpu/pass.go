package cpu

import (
	"fmt"
	"runtime/debug"

	"calla/core/backend"
)

// pass evaluates each block as it is named.
type pass struct {
	*weights
	r Rounding
	k *kernels
	// integer is nil where matrices are multiplied in float32: with plain
	// kernels, and where nothing is rounded.
	integer *integerProducts
	state   *State
	scr     *scratch
	phase   backend.Phase
	tokens  []int32
	from    int // position of the first row
	chunks  []subChunk
	step    *step
	err     error
}

var _ backend.Pass = (*pass)(nil)

func newPass(w *weights, s *State, c backend.Call, tokens []int32) *pass {
	p := &pass{
		weights: w, r: w.device.options.Rounding, k: w.device.kernels, state: s, scr: &w.scratch,
		phase: c.Phase, tokens: tokens, from: s.length, step: &step{argmax: -1},
	}
	if p.r != F32 {
		p.integer = p.k.integer
	}
	if c.Phase == backend.Prefill {
		p.chunks = subChunks(c.Segments, p.from, len(tokens))
	}
	return p
}

// Embed implements backend.Pass.
func (p *pass) Embed() {
	p.block(-1, func() {
		Embed(p.r, p.hidden(), p.embed, p.tokens)
		p.observe(-1, "embed", p.config.Hidden, p.hidden())
	})
}

// Head implements backend.Pass.
func (p *pass) Head() {
	p.block(-1, func() {
		hidden, last := p.config.Hidden, len(p.tokens)-1
		x := p.scr.x[:hidden]
		p.k.rmsNorm(p.r, x, p.scr.h[last*hidden:][:hidden], p.norm, p.config.NormEps)
		p.observe(-1, "norm", hidden, x)
		logits := p.scr.logits[:p.head.Out]
		p.vectorProducts(x, product{p.head, logits, F32})
		p.step.logits, p.step.argmax = logits, p.k.argmax(logits)
	})
}

// Commit implements backend.Pass.
func (p *pass) Commit() (backend.Step, error) {
	s := p.state
	s.open = false
	if p.err != nil {
		s.broken = p.err
		return nil, p.err
	}
	s.length += len(p.tokens)
	s.kv.tokens = s.length
	s.next = p.step.argmax
	return p.step, nil
}

// block runs one block. A weight that can't be read, because its file was
// truncated or its disk failed, ends the call and not the process.
func (p *pass) block(layer int, run func()) {
	if p.err != nil {
		return
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		e := recover()
		if e == nil {
			return
		}
		fault, ok := e.(interface {
			error
			Addr() uintptr
		})
		if !ok {
			panic(e)
		}
		where := "embedding or head"
		if layer >= 0 {
			where = fmt.Sprint("layer ", layer)
		}
		p.err = fmt.Errorf("cpu: %s: a mapped weight can't be read, is its file whole? %w", where, fault)
	}()
	run()
}

// hidden returns the residual stream, [rows, hidden].
func (p *pass) hidden() []float32 { return p.scr.h[:len(p.tokens)*p.config.Hidden] }

// normed returns the residual stream after a norm, [rows, hidden].
func (p *pass) normed(w []float32) []float32 {
	h := p.hidden()
	x := p.scr.x[:len(h)]
	p.eachRow(func(t int) {
		at := t * p.config.Hidden
		p.k.rmsNorm(p.r, x[at:at+p.config.Hidden], h[at:at+p.config.Hidden], w, p.config.NormEps)
	})
	return x
}

// addResidual adds a block's output to the residual stream.
func (p *pass) addResidual(out []float32) {
	h := p.hidden()
	p.eachRow(func(t int) {
		at := t * p.config.Hidden
		p.k.add(p.r, h[at:at+p.config.Hidden], out[at:at+p.config.Hidden])
	})
}

func (p *pass) observe(layer int, name string, width int, values []float32) {
	if f := p.device.options.Observe; f != nil {
		f(layer, name, width, values)
	}
}

// step is a pass that is done.
type step struct {
	argmax int32
	logits []float32
}

// Wait implements backend.Step.
func (s *step) Wait() error { return nil }

// Argmax implements backend.Step.
func (s *step) Argmax() int32 { return s.argmax }

// Logits implements backend.Step.
func (s *step) Logits() []float32 { return s.logits }
