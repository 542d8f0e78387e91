package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"calla/app/prefs"
)

// settings are the flags that more than one command has. A flag has one
// spelling everywhere; see environment.
type settings struct {
	model   string
	anySize bool
	backend string
	// emulator is the library of the emulated device.
	emulator string
	// ptx is the folder of kernels for NVIDIA GPUs.
	ptx string

	maxSeq       int
	prefillChunk int
	cacheEntries int
	queue        int
	idleUnload   time.Duration // 0 is never
}

// modelFlags adds what every command that loads a model has.
func (s *settings) modelFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&s.model, "model", "auto", "folder of the checkpoint, demo for the small model that is built in, or auto: the downloaded model, or the built-in without one")
	f.BoolVar(&s.anySize, "any-size", false, "accept other sizes of the same architecture (for development)")
	bind(f, "backend", &s.backend)
	f.StringVar(&s.emulator, "emulator", filepath.Join("build", "emulator", "libcalla-emulated.so"), "library of the backend emulated, built by scripts/emulator")
	f.StringVar(&s.ptx, "ptx", filepath.Join("build", "cuda"), "kernels of the backend cuda, built by scripts/emulator --cuda")
}

// engineFlags adds what every command that runs an engine has.
func (s *settings) engineFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	bind(f, "max-seq", &s.maxSeq)
	bind(f, "prefill-chunk", &s.prefillChunk)
	bind(f, "cache-entries", &s.cacheEntries)
	bind(f, "queue", &s.queue)
	bind(f, "idle-unload", &s.idleUnload)
}

// environment sets the flags that were not given from variables: --max-seq
// from CALLA_MAX_SEQ.
func environment(f *pflag.FlagSet, lookup func(string) (string, bool)) error {
	var first error
	f.VisitAll(func(flag *pflag.Flag) {
		name := prefs.Env(flag.Name)
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
