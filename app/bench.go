package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"calla/app/bench"
	"calla/app/power"
	"calla/core/cpu"
	"calla/core/engine"
	"calla/core/model"
)

// benchFlags are the flags of calla bench.
type benchFlags struct {
	settings
	plan    bench.Plan
	quick   bool
	maxWait float64 // per cent

	json    bool
	csv     string
	picture string

	peer benchPeer

	// watch replaces the look at the machine, for tests on busy ones.
	watch func(threads int, most float64) *bench.Watch
}

func newBench() *cobra.Command {
	b := benchFlags{watch: func(threads int, most float64) *bench.Watch { return bench.NewWatch(threads, most, power.New()) }}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure how fast the model answers, alone or beside another server",
		Long: "bench measures the time to the first token, prefill and decode at ten prompt\n" +
			"lengths and ten contexts from 256 tokens to 128K, or to what fits. Each length has\n" +
			"a warm-up and at least five runs. Runs do not count whose prompt came from a cache,\n" +
			"whose engine was shared or that the machine held back; it says so and tries again.\n" +
			"Ctrl-C ends it with what was measured.\n\n" +
			"With --against another server of OpenAI's API is measured beside this one, both over\n" +
			"HTTP and by turns, and the ratios are printed.",
		Example: "  calla bench --quick --picture speed.png\n" +
			"  calla bench --against http://127.0.0.1:8080 --against-model qwen --max-seq 8192",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if release, err := power.New().Hold("Calla is measuring"); err == nil {
				defer release() // a machine that can't be kept awake is measured all the same
			}
			ctx, stop := untilHangup(cmd.Context())
			defer stop()
			err := b.run(ctx, cmd.OutOrStdout(), cmd.ErrOrStderr())
			if cmd.Context().Err() == nil && ctx.Err() != nil && errors.Is(err, context.Canceled) {
				return exitHangup
			}
			return err
		},
	}
	b.modelFlags(cmd)
	b.engineFlags(cmd)
	f := cmd.Flags()
	f.BoolVar(&b.quick, "quick", false, "three lengths instead of ten")
	f.Var(lengths{&b.plan.Prompts}, "prompts", "measure prefill at these lengths in tokens, separated by commas, instead of the ten")
	f.Var(lengths{&b.plan.Contexts}, "contexts", "measure decode after so many tokens, instead of the ten")
	f.IntVar(&b.plan.Tokens, "tokens", bench.DefaultTokens, "tokens to generate after each prompt, at least 8")
	f.IntVar(&b.plan.Runs, "runs", bench.MinRuns, "runs of each length that must count, 5 to 1000")
	f.Float64Var(&b.maxWait, "max-wait", 10, "most per cent of a run for which threads may wait for a core; 100 allows any wait, even of more than the whole run")
	f.BoolVar(&b.json, "json", false, "print JSON, every run included")
	f.StringVar(&b.csv, "csv", "", "write a CSV file too, a row for each length")
	f.StringVar(&b.picture, "picture", "", "draw a picture too, a .png or .svg file")
	b.peer.flags(f)
	return cmd
}

// exitHangup is how shells report a program that the end of its terminal ended.
const exitHangup exitCode = 129

// untilHangup returns a context that ends with the terminal too, as with Ctrl-C,
// unless the program was started to outlive it.
func untilHangup(ctx context.Context) (context.Context, context.CancelFunc) {
	if signal.Ignored(syscall.SIGHUP) {
		return context.WithCancel(ctx)
	}
	return signal.NotifyContext(ctx, syscall.SIGHUP)
}

// run measures and writes what was asked for. What an interrupt left is written
// too, before the interrupt is returned.
func (b *benchFlags) run(ctx context.Context, out, progress io.Writer) error {
	if err := b.check(); err != nil {
		return usageError{err}
	}
	if b.peer.url != "" {
		return b.compare(ctx, out, progress)
	}
	r, err := b.measure(ctx, progress)
	if err != nil {
		return err
	}
	return b.finish(ctx, out, r)
}

// check refuses flags before anything is loaded or written.
func (b *benchFlags) check() error {
	if !(b.maxWait >= 0 && b.maxWait <= 100) {
		return fmt.Errorf("--max-wait is %v, want 0 to 100", b.maxWait)
	}
	if err := b.checkFiles(); err != nil {
		return err
	}
	return b.peer.check()
}

// measure runs the engine in this process.
func (b *benchFlags) measure(ctx context.Context, progress io.Writer) (*bench.Report, error) {
	o, err := b.open()
	if err != nil {
		return nil, err
	}
	defer o.Close()
	options, err := b.benchOptions(o)
	if err != nil {
		return nil, err
	}
	plan, err := b.planFor(options.MaxSeq)
	if err != nil {
		return nil, err
	}
	special := append(slices.Clone(options.StopTokens), options.Turn.EndOfTurn)
	options.StopTokens = nil // an answer must not end before its time
	start := time.Now()
	e, err := engine.New(withProgress(o.loader(), newProgress(progress)), options)
	if err != nil {
		return nil, err
	}
	defer o.end(ctx, e)
	if err := e.WaitLoaded(ctx); err != nil {
		return nil, err
	}
	r := b.report(o, options)
	r.Load = time.Since(start).Seconds()
	runner := bench.Runner{
		Target: bench.NewEngine(e, special), Watch: b.watch(computing(o), r.MaxWait),
		Tell: func(line string) { fmt.Fprintln(progress, line) },
	}
	r.Points = runner.Run(ctx, plan)
	r.Peak = bench.PeakMemory()
	bandwidth(ctx, o, runner.Watch, r)
	r.Conclude()
	return r, nil
}

// benchOptions are the engine's. Where no context was asked for it is the
// longest of the plan, or as much of it as fits.
func (b *benchFlags) benchOptions(o *opened) (engine.Options, error) {
	s := b.settings
	if s.maxSeq == 0 {
		s.maxSeq = min(bench.Longest+b.plan.Tokens, o.checkpoint.Config().MaxPositions)
	}
	options, _, err := s.engineOptions(o, slog.New(slog.DiscardHandler))
	var short *engine.MemoryError
	if b.maxSeq == 0 && errors.As(err, &short) && short.Largest > 0 {
		s.maxSeq = short.Largest
		options, _, err = s.engineOptions(o, slog.New(slog.DiscardHandler))
	}
	return options, err
}

// planFor completes the plan.
func (b *benchFlags) planFor(maxSeq int) (bench.Plan, error) {
	n := bench.Lengths
	if b.quick {
		n = bench.QuickLengths
	}
	plan, err := bench.NewPlan(b.plan, maxSeq, n)
	if err != nil {
		return plan, usageError{err}
	}
	return plan, nil
}

func (b *benchFlags) report(o *opened, e engine.Options) *bench.Report {
	return &bench.Report{
		Calla: version, Revision: revision(), At: time.Now(),
		System: runtime.GOOS + "/" + runtime.GOARCH, Device: o.device.Name(), Model: o.served(e).ID,
		MaxSeq: e.MaxSeq, PrefillChunk: e.PrefillChunk, Tokens: b.plan.Tokens, MaxWait: b.maxWait / 100,
		Traffic: bench.TrafficOf(model.Bind(o.checkpoint, e.Vocab)),
	}
}

// computing returns how many threads of this process compute: none where the
// device is not the processor.
func computing(o *opened) int {
	if _, ok := o.device.(*cpu.Device); ok {
		return runtime.GOMAXPROCS(0)
	}
	return 0
}

// bandwidth measures the machine's, once the peak of memory was looked at.
func bandwidth(ctx context.Context, o *opened, w *bench.Watch, r *bench.Report) {
	reader, ok := o.device.(bench.Reader)
	if !ok {
		r.NoBandwidth = "this device has no plain read of its memory to time"
		return
	}
	r.Bandwidth, r.NoBandwidth = bench.Bandwidth(ctx, reader, w)
}
