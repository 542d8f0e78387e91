package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"

	"github.com/spf13/cobra"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/engine"
	"calla/core/server"
)

// finding is one thing that doctor looked at.
type finding struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Says string `json:"says"`
}

// doctor collects findings.
type doctor struct {
	settings
	port     int
	findings []finding
}

func (d *doctor) found(name string, ok bool, format string, args ...any) {
	d.findings = append(d.findings, finding{name, ok, fmt.Sprintf(format, args...)})
}

func newDoctor() *cobra.Command {
	var d doctor
	var asJSON, gpu bool
	var report string
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say what this machine can run, and why not",
		Long: "doctor says what this machine can run. With --gpu it runs every kernel on the GPU\n" +
			"instead, compares what they compute with the processor, times them, and writes a\n" +
			"file to send back.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var ok bool
			var err error
			if gpu {
				ok, err = d.gpu(cmd.Context(), cmd.OutOrStdout(), report)
			} else {
				ok = d.examine()
				err = d.print(cmd.OutOrStdout(), asJSON)
			}
			if err == nil && !ok {
				err = exitCode(1)
			}
			return err
		},
	}
	d.modelFlags(cmd)
	d.engineFlags(cmd)
	bind(cmd.Flags(), "port", &d.port)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the findings as JSON")
	cmd.Flags().BoolVar(&gpu, "gpu", false, "check and time every kernel of the GPU")
	cmd.Flags().StringVar(&report, "report", "calla-doctor-gpu.json", "file for what --gpu finds")
	return cmd
}

// examine looks at everything. It reports whether the model of the settings can
// be served.
func (d *doctor) examine() bool {
	d.found("system", true, "calla %s, %s/%s, %d threads", version, runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0))
	for _, name := range []string{"cpu", "metal", "emulated", "cuda"} {
		s := settings{backend: name, emulator: d.emulator, ptx: d.ptx}
		if dev, err := s.openDevice(); err != nil {
			d.found("backend "+name, false, "%v", err)
		} else {
			d.found("backend "+name, true, "%s", dev.Name())
			dev.Close()
		}
	}
	dev, err := d.openDevice()
	if err != nil {
		d.found("device", false, "%v", err)
		return false
	}
	defer dev.Close()
	if budget, total := dev.Memory(); budget > 0 {
		d.found("memory", true, "%s, of which calla may use %s", bytesText(total), bytesText(budget))
	} else {
		d.found("memory", true, "unknown: nothing is refused for lack of it")
	}
	d.published(dev)
	return d.model(d.settings.model) && d.portFree()
}

// published says whether the model that this program is for would fit.
func (d *doctor) published(dev backend.Device) {
	const name = "Qwen3.6-35B-A3B"
	o := engine.Options{MaxSeq: engine.DefaultMaxSeq, PrefillChunk: d.prefillChunk, CacheEntries: d.cacheEntries}
	if d.maxSeq > 0 {
		o.MaxSeq = d.maxSeq
	}
	c := checkpoint.Published
	scratch := func(rows, maxTokens int) int64 { return dev.ScratchBytes(c, rows, maxTokens) }
	budget, _ := dev.Memory()
	m, err := o.Fit(c, c.Bytes(), scratch, budget)
	if err != nil {
		d.found(name, false, "%v", err)
		return
	}
	d.found(name, true, "would fit: %s for contexts of %d tokens", bytesText(m.Total()), o.MaxSeq)
}

// model checks the checkpoint that would be served.
func (d *doctor) model(name string) bool {
	o, err := d.open()
	if err != nil {
		d.found("model "+name, false, "%v", err)
		return false
	}
	defer o.Close()
	e, m, err := d.engineOptions(o, slog.New(slog.DiscardHandler))
	if err != nil {
		d.found("model "+name, false, "%s; %v", o.checkpoint, err)
		return false
	}
	d.found("model "+name, true, "%s; %s for contexts of %d tokens", o.checkpoint, bytesText(m.Total()), e.MaxSeq)
	return true
}

func (d *doctor) portFree() bool {
	ls, err := server.Listen("localhost", d.port)
	if err != nil {
		d.found("port", false, "%v", err)
		return false
	}
	for _, l := range ls {
		defer func(l net.Listener) { l.Close() }(l)
	}
	d.found("port", true, "%d is free", d.port)
	return true
}

func (d *doctor) print(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(d.findings)
	}
	for _, f := range d.findings {
		mark := "yes"
		if !f.OK {
			mark = "no"
		}
		if _, err := fmt.Fprintf(w, "%-3s  %-16s  %s\n", mark, f.Name, f.Says); err != nil {
			return err
		}
	}
	return nil
}
