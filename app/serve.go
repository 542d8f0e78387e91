package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"calla/app/power"
	"calla/app/supervise"
	"calla/core/completion"
	"calla/core/engine"
	"calla/core/server"
)

// drainTime is how long requests that run may finish after Ctrl-C.
const drainTime = 5 * time.Second

// serveFlags are the flags of calla serve alone.
type serveFlags struct {
	settings
	host    string
	port    int
	keyFile string
	models  bool // listed without the key too
	hosts   []string
	origins []string
	logFile string

	machine    power.Machine // nil takes this one
	supervised bool
	parent     *supervise.Parent // nil where not supervised
}

func newServe() *cobra.Command {
	var s serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve the model to the programs on this machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log, end, err := s.log(cmd.ErrOrStderr())
			if err != nil {
				return usageError{err}
			}
			defer end()
			ctx := cmd.Context()
			if s.supervised {
				if ctx, s.parent, err = supervise.Attach(ctx, os.Stdin, os.Stdout); err != nil {
					return usageError{err}
				}
			}
			return s.serve(ctx, cmd.ErrOrStderr(), log)
		},
	}
	s.modelFlags(cmd)
	s.engineFlags(cmd)
	f := cmd.Flags()
	bind(f, "host", &s.host)
	bind(f, "port", &s.port)
	bind(f, "key-file", &s.keyFile)
	bind(f, "open-models", &s.models)
	bind(f, "allow-host", &s.hosts)
	bind(f, "allow-origin", &s.origins)
	f.StringVar(&s.logFile, "log-file", "", "file for the log, instead of standard error; a new one begins after 10 MB, two older ones are kept")
	f.BoolVar(&s.supervised, "supervised", false, "be the child of the menu-bar app: end with it, and tell it the address")
	f.MarkHidden("supervised")
	return cmd
}

// log returns where the log goes, and what ends it.
func (s *serveFlags) log(standard io.Writer) (log *slog.Logger, end func() error, err error) {
	if s.logFile == "" {
		return slog.New(slog.NewTextHandler(standard, nil)), func() error { return nil }, nil
	}
	f, err := openLog(s.logFile)
	if err != nil {
		return nil, nil, err
	}
	return slog.New(slog.NewTextHandler(f, nil)), f.Close, nil
}

// serve runs until ctx ends. The address is bound before the model is loaded,
// so that a busy port is known at once and clients can ask how far loading is.
// A parent, where there is one, is told the address.
func (s *serveFlags) serve(ctx context.Context, out io.Writer, log *slog.Logger) error {
	key, err := s.key()
	if err != nil {
		return usageError{err}
	}
	if err := server.CheckBind(s.host, key); err != nil {
		return usageError{err}
	}
	auto := s.model == "auto"
	o, err := s.open()
	if err != nil {
		return err
	}
	defer o.Close()
	e, memory, err := s.engineOptions(o, log)
	if err != nil {
		return err
	}
	listeners, err := server.Listen(s.host, s.port)
	if err != nil {
		return err
	}
	for _, l := range listeners {
		fmt.Fprintf(out, "listening on http://%s\n", l.Addr())
	}
	if auto && o.demo {
		fmt.Fprintln(out, "no downloaded model: serving the small one that is built in; calla pull downloads Qwen3.6-35B-A3B")
	}
	fmt.Fprintf(out, "model %s on %s, at most %s of memory for contexts of %d tokens\n",
		o.checkpoint.Name(), o.device.Name(), bytesText(memory.Total()), e.MaxSeq)

	run, err := engine.New(withProgress(o.loader(), newProgress(out)), e)
	if err != nil {
		return err
	}
	defer endServing(o, run, log)
	handler, err := s.handler(o, run, memory, key, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() {
		if err := run.WaitLoaded(ctx); err != nil {
			cancel(err)
			return
		}
		fmt.Fprintln(out, "ready")
	}()
	go watchPressure(ctx, run, memoryPressure, pressureEvery)
	machine := s.powered()
	go followSleep(ctx, run, machine, log)
	if s.parent == nil { // the menu keeps the machine awake itself
		go stayAwake(ctx, working(run), machine, awakeEvery, log)
	}
	if s.parent != nil {
		if err := s.parent.Listening("http://" + listeners[0].Addr().String()); err != nil {
			return err
		}
	}
	if err := server.Serve(ctx, listeners, handler, drainTime); err != nil {
		return err
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// endServing closes the engine. Requests that run may finish for a while.
func endServing(o *opened, e *engine.Engine, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	if err := o.end(ctx, e); err != nil {
		log.Warn("the process ends while the device is at work", "error", err)
	}
}

// powered returns the machine whose sleep and heat are followed.
func (s *serveFlags) powered() power.Machine {
	if s.machine == nil {
		s.machine = power.New()
	}
	return s.machine
}

func (s *serveFlags) key() (string, error) {
	if s.keyFile == "" {
		return "", nil
	}
	return server.ReadKey(s.keyFile)
}

// handler wires the server to the engine.
func (s *serveFlags) handler(o *opened, e *engine.Engine, memory engine.Memory, key string, log *slog.Logger) (http.Handler, error) {
	c, err := completion.New(e, o.tokenizer)
	if err != nil {
		return nil, err
	}
	m := o.served(e.Options())
	if m.Receipt, err = s.receipt(o); err != nil {
		return nil, err
	}
	budget, _ := o.device.Memory()
	machine := s.powered()
	instance := ""
	if s.parent != nil {
		instance = s.parent.Nonce
	}
	return server.New(server.Options{
		Model:    m,
		Version:  version,
		Instance: instance,
		Start: func(ctx context.Context, r completion.Request) (server.Stream, error) {
			return c.Start(ctx, r)
		},
		Encode:     c.Encode,
		Decode:     c.Decode,
		Engine:     func() server.EngineStatus { return engineStatus(e.Status(), machine.Condition(), memory, budget) },
		Key:        key,
		OpenModels: s.models,
		Hosts:      s.hosts,
		Origins:    s.origins,
		Log:        log,
	}), nil
}
