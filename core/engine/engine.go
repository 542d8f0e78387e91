// Package engine turns prompt tokens into generated tokens.
//
// An Engine is a loaded model and a queue of requests for it. A caller gives
// the whole prompt each time; the engine reuses what it has evaluated before.
// Only the worker goroutine touches the device. Text, chat templates and HTTP
// belong to the packages above.
//
// The same prompt gives the same tokens, however its prefix was computed: from
// the cache or cold, in calls of any size, alone or under load. Three rules
// make it so, and every change here must keep them:
//
//   - prompt tokens go through prefill, generated tokens through decode, and
//     only prefilled state is kept for later prompts;
//   - where a prompt may be cut depends on its token ids alone (see grid);
//   - a session's state is its own while it runs.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"calla/core/backend"
	"calla/core/model"
)

// Options are an engine's settings.
type Options struct {
	// MaxSeq is the most tokens of prompt and completion together.
	MaxSeq int
	// PrefillChunk is the most prompt tokens a call evaluates, a multiple of
	// backend.SubChunk. It changes speed and scratch memory, never a result.
	PrefillChunk int
	// Queue is how many requests may wait.
	Queue int
	// CacheEntries is how many sequences the prefix cache keeps.
	CacheEntries int
	// IdleUnload is how long the engine stays idle before it frees weights and
	// states; 0 is for ever.
	IdleUnload time.Duration
	// StuckAfter is how long a call of one row may take before the device counts
	// as stuck; calls of more rows may take longer (see allowance). 0 is for ever.
	StuckAfter time.Duration

	// Vocab is how many rows of the logits are tokens; the rest is padding.
	Vocab int
	// Turn says where segments start.
	Turn Turn
	// StopTokens end a completion.
	StopTokens []int32

	Log *slog.Logger
}

// Defaults of the options.
const (
	DefaultMaxSeq       = 32768
	DefaultPrefillChunk = 2048
	DefaultQueue        = 64
	DefaultCacheEntries = 2
	DefaultIdleUnload   = 30 * time.Minute
	DefaultStuckAfter   = 5 * time.Minute
)

// Loader lays the model out on its device. The engine calls it at the start
// and again after an idle unload; close gives everything back.
type Loader func(ctx context.Context, progress func(done, total int64)) (m *model.Model, close func() error, err error)

// Engine runs one model.
type Engine struct {
	o    Options
	load Loader

	mu        sync.Mutex
	queue     []*job     // waiting, the next first
	running   *job       // on the device
	foreseen  *foresight // to prefill when nothing else is to do
	ahead     bool       // that is being done
	closing   bool
	abortLoad context.CancelFunc // of the load under way
	wake      chan struct{}      // capacity 1: one of these changed

	ctx    context.Context // of the worker; ends when running work must end
	cancel context.CancelFunc
	done   chan struct{}

	meter    meter
	watch    *time.Timer // calls giveUp
	pressure pressure
	sleep    sleep
}

// New starts an engine. The worker loads the model at once; requests may be
// submitted meanwhile.
func New(load Loader, o Options) (*Engine, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	e := &Engine{o: o, load: load, wake: make(chan struct{}, 1), done: make(chan struct{})}
	e.ctx, e.cancel = context.WithCancel(context.Background())
	e.meter.state = Loading
	e.watch = time.AfterFunc(time.Hour, e.giveUp)
	e.watch.Stop()
	go newWorker(e).loop()
	return e, nil
}

func (o Options) check() error {
	for _, f := range []struct {
		flag string
		is   int
		min  int
	}{
		{"max-seq", o.MaxSeq, 1},
		{"prefill-chunk", o.PrefillChunk, backend.SubChunk},
		{"queue", o.Queue, 0},
		{"cache-entries", o.CacheEntries, 0},
		{"vocabulary", o.Vocab, 1},
	} {
		if f.is < f.min {
			return fmt.Errorf("engine: %s is %d, want at least %d", f.flag, f.is, f.min)
		}
	}
	if o.PrefillChunk%backend.SubChunk != 0 {
		return fmt.Errorf("engine: prefill-chunk is %d, want a multiple of %d", o.PrefillChunk, backend.SubChunk)
	}
	if o.IdleUnload < 0 || o.StuckAfter < 0 {
		return fmt.Errorf("engine: idle-unload is %v and stuck-after %v, want durations of 0 or more", o.IdleUnload, o.StuckAfter)
	}
	return nil
}

// TokenError is a prompt token that the vocabulary does not have. Its text does
// not name the token: errors end up in logs.
type TokenError struct {
	Position int
	Token    int32
	Vocab    int
}

func (t *TokenError) Error() string {
	return fmt.Sprintf("engine: the prompt's token at %d is not in the vocabulary of %d tokens", t.Position, t.Vocab)
}

// ErrNoPrompt is a prompt without a token.
var ErrNoPrompt = fmt.Errorf("engine: empty prompt, want at least one token")

// admit refuses what can never run.
func (o Options) admit(r Request) error {
	n := len(r.Prompt)
	if n == 0 {
		return ErrNoPrompt
	}
	if n >= o.MaxSeq || r.MaxTokens > o.MaxSeq-n {
		return &ContextError{Prompt: n, MaxTokens: r.MaxTokens, Limit: o.MaxSeq}
	}
	if err := checkTokens(r.Prompt, o.Vocab); err != nil {
		return err
	}
	if r.LogProbs > MaxTopLogProbs {
		return &SamplingError{"top_logprobs", fmt.Sprintf("%d, want at most %d", r.LogProbs, MaxTopLogProbs)}
	}
	return r.Sampling.check(o.Vocab)
}

// checkTokens refuses tokens that a vocabulary does not have.
func checkTokens(prompt []int32, vocab int) error {
	for i, t := range prompt {
		if t < 0 || int(t) >= vocab {
			return &TokenError{i, t, vocab}
		}
	}
	return nil
}

// closeGrace is how long Close waits for a call on its way after it has
// cancelled the rest.
const closeGrace = 2 * time.Second

// Close ends the engine. Requests that run or wait may finish until ctx ends;
// then they are cancelled. New ones get ErrStopped. The model is freed when
// Close returns nil. Where a call is still on the device a while after the
// cancel, Close returns ErrStuck: the device and the checkpoint are in use then,
// and must stay open.
func (e *Engine) Close(ctx context.Context) error {
	defer e.cancel()
	e.mu.Lock()
	e.closing, e.foreseen = true, nil
	e.abortVainLoad()
	e.mu.Unlock()
	e.notify()
	select {
	case <-e.done:
		return nil
	case <-ctx.Done():
	}
	e.cancel()
	select {
	case <-e.done:
		return nil
	case <-time.After(closeGrace):
		e.endAll(ErrStopped)
		return ErrStuck
	}
}
