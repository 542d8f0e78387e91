package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"

	"calla/bundle/demo"
	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/completion"
	"calla/core/cpu"
	"calla/core/download"
	"calla/core/engine"
	"calla/core/model"
	"calla/core/tokenizer"
	"calla/metal"
)

// opened is a checkpoint that was checked and the device it is to run on. Its
// weights are not loaded yet.
type opened struct {
	checkpoint *checkpoint.Checkpoint
	tokenizer  *tokenizer.Tokenizer // nil in a checkpoint without one, where open allowed that
	device     backend.Device
	demo       bool
	inUse      bool // the device is still at work on the checkpoint
}

// open checks the model that the settings name, and its tokenizer, and finds a
// device for it.
func (s *settings) open() (*opened, error) {
	o, err := s.openBare()
	if err == nil && o.tokenizer == nil {
		o.Close()
		return nil, modelError{fmt.Errorf("checkpoint %s has no tokenizer.json", o.checkpoint.Name())}
	}
	return o, err
}

// openBare is open for commands that need no tokenizer.
func (s *settings) openBare() (*opened, error) {
	device, err := s.openDevice()
	if err != nil {
		return nil, usageError{err}
	}
	if err := s.findModel(); err != nil {
		device.Close()
		return nil, modelError{err}
	}
	c, err := s.openCheckpoint()
	if err != nil {
		device.Close()
		return nil, modelError{err}
	}
	o := &opened{checkpoint: c, device: device, demo: s.model == "demo"}
	o.tokenizer, err = readTokenizer(c)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		o.Close()
		return nil, modelError{err}
	}
	return o, nil
}

// findModel settles which model the settings mean: auto is the downloaded one,
// or the built-in where none was downloaded. A folder whose files changed since
// they were verified is refused.
func (s *settings) findModel() error {
	switch s.model {
	case "demo":
		return nil
	case "auto":
		folder, err := locateModel()
		if errors.Is(err, download.ErrNotFound) {
			s.model = "demo"
			return nil
		}
		s.model = folder
		return err
	}
	return checkModel(s.model)
}

func (s *settings) openCheckpoint() (*checkpoint.Checkpoint, error) {
	if s.model == "demo" {
		return checkpoint.Open(demo.Source(), checkpoint.Options{Exact: []checkpoint.Config{demo.Config}})
	}
	return checkpoint.Open(checkpoint.Dir(s.model), checkpoint.Options{AnySize: s.anySize})
}

func readTokenizer(c *checkpoint.Checkpoint) (*tokenizer.Tokenizer, error) {
	vocabulary, err := c.ReadFile("tokenizer.json")
	if err != nil {
		return nil, err
	}
	config, err := c.ReadFile("tokenizer_config.json")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	t, err := tokenizer.Load(vocabulary, config)
	if err != nil {
		return nil, err
	}
	if n, rows := t.VocabSize(), c.Config().Vocab; n > rows {
		return nil, fmt.Errorf("tokenizer.json has %d tokens, the model's vocabulary only %d rows: they don't belong together", n, rows)
	}
	return t, nil
}

// openDevice returns what the settings' backend computes on.
func (s *settings) openDevice() (backend.Device, error) {
	switch s.backend {
	case "auto":
		if d, ok := best(); ok {
			return d, nil
		}
		return cpu.New(cpu.Options{}), nil
	case "cpu":
		return cpu.New(cpu.Options{}), nil
	case "cuda":
		d, err := metal.OpenCUDA(s.ptx)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("backend cuda: %w; --ptx names another folder", err)
		}
		if err != nil {
			return nil, fmt.Errorf("backend cuda: %w", err)
		}
		return metal.New(d, metal.Options{}), nil
	case "emulated":
		d, err := metal.OpenEmulated(s.emulator)
		if err != nil {
			return nil, fmt.Errorf("backend emulated: %w; --emulator names it", err)
		}
		return metal.New(d, metal.Options{}), nil
	case "metal":
		return openMetal()
	}
	return nil, fmt.Errorf("backend %q, want auto, cpu, metal, emulated or cuda", s.backend)
}

// end closes an engine that runs on what was opened. Its requests may finish
// until ctx ends. What a device is still at work on stays open as long as the
// process.
func (o *opened) end(ctx context.Context, e *engine.Engine) error {
	err := e.Close(ctx)
	o.inUse = errors.Is(err, engine.ErrStuck)
	return err
}

// Close gives back what open opened.
func (o *opened) Close() error {
	if o.inUse {
		return nil
	}
	return errors.Join(o.device.Close(), o.checkpoint.Close())
}

// engineOptions completes the settings with what the model says, and refuses
// what does not fit the context or the memory.
func (s *settings) engineOptions(o *opened, log *slog.Logger) (engine.Options, engine.Memory, error) {
	e := engine.Options{
		MaxSeq:       s.maxSeq,
		PrefillChunk: s.prefillChunk,
		Queue:        s.queue,
		CacheEntries: s.cacheEntries,
		IdleUnload:   s.idleUnload,
		Log:          log,
	}
	longest := o.checkpoint.Config().MaxPositions
	if e.MaxSeq == 0 {
		e.MaxSeq = min(engine.DefaultMaxSeq, longest)
	}
	if e.MaxSeq < 0 || e.MaxSeq > longest {
		return e, engine.Memory{}, usageError{fmt.Errorf("--max-seq is %d, want 1 to %d, the longest context of this model", s.maxSeq, longest)}
	}
	var err error
	e.Vocab, e.Turn, e.StopTokens, err = completion.EngineOptions(o.tokenizer, o.checkpoint.StopTokens())
	if err != nil {
		return e, engine.Memory{}, err
	}
	budget, _ := o.device.Memory()
	m, err := e.Fit(o.checkpoint.Config(), o.checkpoint.Bytes(), o.scratch, budget)
	return e, m, err
}

// scratch is the device's closed form for this model.
func (o *opened) scratch(rows, maxTokens int) int64 {
	return o.device.ScratchBytes(o.checkpoint.Config(), rows, maxTokens)
}

// loader lays the model's weights out on the device.
func (o *opened) loader() engine.Loader {
	return func(ctx context.Context, progress func(done, total int64)) (*model.Model, func() error, error) {
		tokens := 0
		if o.tokenizer != nil {
			tokens = o.tokenizer.VocabSize()
		}
		m, err := model.Load(ctx, o.device, o.checkpoint, tokens, progress)
		if err != nil {
			return nil, nil, err
		}
		return m, m.Close, nil
	}
}
