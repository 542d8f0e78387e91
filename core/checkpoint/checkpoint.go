// Package checkpoint opens the files of a model: config.json, the safetensors
// shards and what lies beside them.
//
// Open checks everything before it reads the first byte of a weight: that the
// files are the one architecture this engine runs, in MLX's affine 4-bit form,
// of a size it accepts, complete, and consistent. Each refusal says which file
// or tensor, what it is, and what is wanted. So whoever has a Checkpoint need
// not check again.
//
// Files come from a Source and are hostile until checked: sizes are compared
// without overflow, headers cost a bounded amount of memory, and no name in a
// file leads out of the folder. Text, tokenizer and templates are other
// packages' business; they get the files as they are.
package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Options say which sizes of the architecture Open accepts.
type Options struct {
	// Exact are the accepted configurations; none means Published.
	Exact []Config
	// AnySize accepts every configuration that the kernels can run.
	AnySize bool
}

// Checkpoint is an open checkpoint whose files have all been checked. Its
// methods may be called from several goroutines, but not beside Close.
type Checkpoint struct {
	src        Source
	config     Config
	generation Generation
	stop       []int32
	weights    map[string]Weight
	bytes      int64
	shards     []*shard
}

// Open opens the checkpoint in src. On error nothing is left open.
func Open(src Source, o Options) (*Checkpoint, error) {
	c := &Checkpoint{src: src}
	if err := c.open(o); err != nil {
		c.Close()
		return nil, fmt.Errorf("checkpoint: %s: %w", src, err)
	}
	return c, nil
}

func (c *Checkpoint) open(o Options) error {
	files, err := c.src.List()
	if err != nil {
		return err
	}
	if err := c.readConfig(files, o); err != nil {
		return err
	}
	x, err := readIndex(c.src, files)
	if err != nil {
		return err
	}
	for _, name := range x.shards {
		s, err := openShard(c.src, name)
		if err != nil {
			return err
		}
		c.shards = append(c.shards, s)
	}
	return c.bind(x)
}

// readConfig reads config.json and generation_config.json.
func (c *Checkpoint) readConfig(files []string, o Options) error {
	root, err := readJSON(c.src, configFile)
	if errors.Is(err, fs.ErrNotExist) {
		return noConfig(c.src, files)
	}
	if err != nil {
		return err
	}
	text, err := c.checkConfig(root, files, o)
	if err != nil {
		return fmt.Errorf("%s: %w", configFile, err)
	}
	generation, stop, err := readGeneration(c.src, c.config.Vocab)
	if err != nil {
		return err
	}
	c.generation = generation
	c.stop, err = stopTokens(root, text, stop, c.config)
	return err
}

// checkConfig decides by config.json what the checkpoint is. What kind it is
// comes before its size: of an FP8 file of another size people want to hear
// that it is FP8.
func (c *Checkpoint) checkConfig(root value, files []string, o Options) (text value, err error) {
	if text, err = architecture(root); err != nil {
		return "", err
	}
	q, err := readQuantization(root, files)
	if err != nil {
		return "", err
	}
	if c.config, err = readText(root, text); err != nil {
		return "", err
	}
	if err := accept(c.config, o); err != nil {
		return "", err
	}
	return text, q.checkRouters(c.config.Layers)
}

// noConfig says what a folder without config.json is.
func noConfig(src Source, files []string) error {
	if d, ok := src.(dir); ok && d.isHubCache() {
		return fmt.Errorf("no %s: the cache of a Hub repository, want one of the folders in its snapshots", configFile)
	}
	if what := identifyFolder(files); what != "" {
		return fmt.Errorf("no %s: %s; %s", configFile, what, wanted)
	}
	return fmt.Errorf("no %s; %s", configFile, wanted)
}

// bind matches the tensors of the shards with those that the model needs.
func (c *Checkpoint) bind(x index) error {
	missing := map[string]Tensor{}
	for t := range c.config.Tensors() {
		missing[t.Name] = t
	}
	c.weights = make(map[string]Weight, len(missing))
	for _, s := range c.shards {
		for i := range s.entries {
			if err := c.bindEntry(s, &s.entries[i], missing); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
		if err := x.check(s.name, s.entries); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	for t := range c.config.Tensors() {
		if _, ok := missing[t.Name]; ok {
			return fmt.Errorf("tensor %s is missing, want %s %v; %d are missing in all", t.Name, t.DTypes[0], t.Shape, len(missing))
		}
	}
	if err := x.checkComplete(c.shards); err != nil {
		return err
	}
	for _, s := range c.shards {
		s.entries = nil // and with them the headers' text
	}
	return nil
}

// bindEntry moves one tensor from the missing to the weights.
func (c *Checkpoint) bindEntry(s *shard, e *entry, missing map[string]Tensor) error {
	t, ok := missing[e.name]
	if !ok {
		if w, ok := c.weights[e.name]; ok {
			return fmt.Errorf("tensor %s is in %s too", e.name, w.Shard)
		}
		if skipped(e.name) {
			return nil
		}
		return fmt.Errorf("tensor %s is no part of the model", quote(e.name))
	}
	delete(missing, e.name)
	w := Weight{Name: t.Name, Shape: t.Shape, Shard: s.name, Offset: s.data + e.begin, Size: e.end - e.begin, file: s.file}
	for _, d := range t.DTypes {
		if e.dtype == d.String() {
			w.DType = d
		}
	}
	if w.DType == 0 {
		return fmt.Errorf("tensor %s: element type %s, want %v", t.Name, e.dtype, t.DTypes)
	}
	if !slices.EqualFunc(e.shape(), t.Shape, func(a int64, b int) bool { return a == int64(b) }) {
		return fmt.Errorf("tensor %s: shape %v, want %v", t.Name, e.shape(), t.Shape)
	}
	c.weights[t.Name] = w
	c.bytes += w.Size
	return nil
}

// Config returns the dimensions of the model.
func (c *Checkpoint) Config() Config { return c.config }

// Weight returns a weight by its name in the files, and false for a tensor that
// is no part of the text model.
func (c *Checkpoint) Weight(name string) (Weight, bool) {
	w, ok := c.weights[name]
	return w, ok
}

// StopTokens returns, sorted, the tokens that end a completion by config.json
// and generation_config.json. The tokenizer may know more.
func (c *Checkpoint) StopTokens() []int32 { return slices.Clone(c.stop) }

// Generation returns the makers' choice of sampling.
func (c *Checkpoint) Generation() Generation { return c.generation }

// Bytes returns the bytes of all weights of the text model.
func (c *Checkpoint) Bytes() int64 { return c.bytes }

// ReadFile returns a copy of a file beside the weights, of at most 256 MiB. One
// that is not there is fs.ErrNotExist.
func (c *Checkpoint) ReadFile(name string) ([]byte, error) {
	text, err := readFile(c.src, name, maxFile)
	if err != nil {
		return nil, fmt.Errorf("checkpoint: %s: %s: %w", c.src, name, err)
	}
	return []byte(text), nil
}

// Name returns a short name of the checkpoint for people and clients: the
// folder's, or of a Hub cache the repository's.
func (c *Checkpoint) Name() string {
	d, ok := c.src.(dir)
	if !ok {
		return c.src.String()
	}
	return d.name()
}

// String says in a line what the checkpoint is.
func (c *Checkpoint) String() string {
	what := "another size of Qwen3.6's architecture"
	if c.config == Published {
		what = "Qwen3.6-35B-A3B"
	}
	return fmt.Sprintf("%s in MLX 4-bit: %d layers of width %d, %d experts of which %d run, %d tokens; %.2f GB in %d files",
		what, c.config.Layers, c.config.Hidden, c.config.Experts, c.config.ExpertsPerToken, c.config.Vocab,
		float64(c.bytes)/1e9, len(c.shards))
}

// Close closes the files. No Weight may be used afterwards.
func (c *Checkpoint) Close() error {
	var errs []error
	for _, s := range c.shards {
		errs = append(errs, s.file.Close())
	}
	c.shards = nil
	return errors.Join(errs...)
}
