package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"calla/core/engine"
)

// settings are the flags that more than one command has. A flag has one
// spelling everywhere; see environment.
type settings struct {
	model   string
	anySize bool
	backend string

	maxSeq       int
	prefillChunk int
	cacheEntries int
	queue        int
	idleUnload   idle
}

// idle is how long the engine stays idle before it frees its memory.
type idle time.Duration

func (d *idle) Type() string { return "duration" }

func (d *idle) String() string {
	if *d == 0 {
		return "never"
	}
	return time.Duration(*d).String()
}

func (d *idle) Set(s string) error {
	if s == "never" {
		*d = 0
		return nil
	}
	x, err := time.ParseDuration(s)
	if err != nil || x <= 0 {
		return fmt.Errorf("%q, want a duration such as 30m, or never", s)
	}
	*d = idle(x)
	return nil
}

// modelFlags adds what every command that loads a model has.
func (s *settings) modelFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.model, "model", "demo", "folder of the checkpoint, or demo for the small model that is built in")
	f.BoolVar(&s.anySize, "any-size", false, "accept other sizes of the same architecture (for development)")
	f.StringVar(&s.backend, "backend", "auto", "what computes: auto, cpu, metal, emulated or cuda")
}

// engineFlags adds what every command that runs an engine has.
func (s *settings) engineFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	s.idleUnload = idle(engine.DefaultIdleUnload)
	f.IntVar(&s.maxSeq, "max-seq", 0, "most tokens of prompt and completion together (default the model's, at most "+fmt.Sprint(engine.DefaultMaxSeq)+")")
	f.IntVar(&s.prefillChunk, "prefill-chunk", engine.DefaultPrefillChunk, "most prompt tokens evaluated in one go, a multiple of 64")
	f.IntVar(&s.cacheEntries, "cache-entries", engine.DefaultCacheEntries, "conversations whose evaluated prompts are kept")
	f.IntVar(&s.queue, "queue", engine.DefaultQueue, "requests that may wait; more are refused")
	f.Var(&s.idleUnload, "idle-unload", "free the model's memory after this long without a request, or never")
}

// environment sets the flags that were not given from variables: --max-seq
// from CALLA_MAX_SEQ.
func environment(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var first error
	f.VisitAll(func(flag *pflag.Flag) {
		name := "CALLA_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
		value, ok := lookup(name)
		if flag.Changed || !ok || first != nil || flag.Name == "help" {
			return
		}
		if err := f.Set(flag.Name, value); err != nil {
			first = fmt.Errorf("environment variable %s: %w", name, err)
		}
	})
	return first
}
