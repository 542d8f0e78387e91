package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"calla/app/kernels"
	"calla/app/power"
	"calla/core/checkpoint"
	"calla/metal"
)

// gpuReport is the file that calla doctor --gpu writes. It names no person, no
// path and no machine but by its model.
type gpuReport struct {
	Command  string          `json:"command"`
	Version  string          `json:"version"`
	Revision string          `json:"revision,omitempty"`
	At       time.Time       `json:"at"`
	System   string          `json:"system"`
	Machine  string          `json:"machine,omitempty"`
	Threads  int             `json:"threads"`
	Budget   int64           `json:"memory_budget_bytes"`
	Total    int64           `json:"memory_bytes"`
	Thermal  [2]string       `json:"thermal"` // before and after
	LowPower bool            `json:"low_power"`
	Model    string          `json:"model"`
	Verdict  string          `json:"verdict"`
	Error    string          `json:"error,omitempty"`
	GPU      *kernels.Report `json:"gpu,omitempty"`
}

// gpu checks the kernels of the settings' GPU and writes what it found to a file.
// It reports whether all is well.
func (d *doctor) gpu(ctx context.Context, out io.Writer, file string) (bool, error) {
	r := &gpuReport{
		Command: "calla doctor --gpu", Version: version, Revision: revision(), At: time.Now().UTC(),
		Threads: runtime.GOMAXPROCS(0),
	}
	r.System, r.Machine = systemName()
	err := d.checkGPU(ctx, out, r)
	if err != nil {
		r.Error = withoutHome(err.Error())
		r.Verdict = "no verdict: " + r.Error
	}
	if e := r.write(file); e != nil {
		return false, errors.Join(err, e)
	}
	if r.GPU != nil {
		if e := printKernels(out, r.GPU); e != nil {
			return false, e
		}
	}
	_, e := fmt.Fprintf(out, "\n%s\nwritten to %s, which holds numbers and names of kernels alone\n", r.Verdict, file)
	return err == nil && r.GPU.OK, errors.Join(err, e)
}

// checkGPU fills in what the run finds.
func (d *doctor) checkGPU(ctx context.Context, out io.Writer, r *gpuReport) error {
	driver, name, err := d.openDriver()
	if err != nil {
		return usageError{err}
	}
	o := kernels.Thorough
	if name == "emulated" {
		o = kernels.Options{} // its times say nothing
	}
	var c *checkpoint.Checkpoint
	if c, r.Model, err = d.gpuModel(name != "emulated"); err != nil {
		driver.Close()
		return modelError{err}
	}
	defer c.Close()
	r.Budget, r.Total = driver.Memory()
	machine := power.New()
	before := machine.Condition()
	r.GPU, err = kernels.Run(ctx, driver, c, o, func(what string) { fmt.Fprintln(out, what) })
	after := machine.Condition()
	r.Thermal, r.LowPower = [2]string{string(before.Thermal), string(after.Thermal)}, after.LowPower
	if err == nil {
		r.Verdict = verdict(r.GPU)
	}
	return err
}

// gpuModel returns the model whose layers are run, and what it is. Without a
// downloaded one a real GPU gets layers of its sizes: of the small model's, times
// say nothing.
func (d *doctor) gpuModel(real bool) (*checkpoint.Checkpoint, string, error) {
	auto := d.settings.model == "auto"
	if err := d.findModel(); err != nil {
		return nil, "", err
	}
	demo := d.settings.model == "demo"
	if auto && demo && real {
		return kernels.Made(kernels.PublishedSizes), "made, of the published sizes", nil
	}
	c, err := d.openCheckpoint()
	switch {
	case err != nil:
		return nil, "", err
	case demo:
		return c, "demo", nil
	case c.Config() == checkpoint.Published:
		return c, publishedID, nil
	}
	return c, "another", nil
}

// openDriver returns the GPU that the settings mean, and of which backend it is.
// Auto is the first there is.
func (d *doctor) openDriver() (metal.Driver, string, error) {
	open := map[string]func() (metal.Driver, error){
		"metal":    openApple,
		"cuda":     func() (metal.Driver, error) { return metal.OpenCUDA(d.ptx) },
		"emulated": func() (metal.Driver, error) { return metal.OpenEmulated(d.emulator) },
	}
	list := []string{d.backend}
	if d.backend == "auto" {
		list = []string{"metal", "cuda", "emulated"}
	}
	var all []error
	for _, name := range list {
		if open[name] == nil {
			return nil, "", fmt.Errorf("backend %q is no GPU: want auto, metal, cuda or emulated", name)
		}
		driver, err := open[name]()
		if err == nil {
			return driver, name, nil
		}
		all = append(all, err)
	}
	return nil, "", errors.Join(all...)
}

// withoutHome takes a person's name out of paths.
func withoutHome(text string) string {
	if home, err := os.UserHomeDir(); err == nil && len(home) > 1 {
		return strings.ReplaceAll(text, home, "~")
	}
	return text
}

func (r *gpuReport) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err == nil {
		err = os.WriteFile(file, append(text, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func printKernels(w io.Writer, r *kernels.Report) error {
	for _, c := range r.Checks {
		if !c.OK {
			if _, err := fmt.Fprintf(w, "no   %v\n", c); err != nil {
				return err
			}
		}
	}
	for _, k := range r.Kernels {
		mark, share := "yes", ""
		if !k.OK {
			mark = "no"
		}
		if k.Share > 0 {
			share = fmt.Sprintf("%4.0f %% of a copy's rate", 100*k.Share)
		}
		_, err := fmt.Fprintf(w, "%-3s  %-34s %-7s %4d runs %10.1f µs  %s\n", mark, k.Name, k.Phase, k.Runs, k.Time*1e6, share)
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "copy %.1f GB/s\n", r.Copy/1e9)
	return err
}

// verdict sums a report up in a line.
func verdict(r *kernels.Report) string {
	var wrong []string
	names := map[string]bool{}
	low, high := 0.0, 0.0
	for _, k := range r.Kernels {
		names[k.Name] = true
		if !k.OK && !slices.Contains(wrong, k.Name) {
			wrong = append(wrong, k.Name)
		}
		if k.Share > 0 {
			if low == 0 || k.Share < low {
				low = k.Share
			}
			high = max(high, k.Share)
		}
	}
	if !r.OK {
		return fmt.Sprintf("verdict: WRONG on %s: %d of %d kernels: %s", r.Device, len(wrong), len(names), strings.Join(wrong, ", "))
	}
	return fmt.Sprintf("verdict: good on %s: %d kernels compute what the processor does; decode reads at %.0f to %.0f %% of a copy's rate",
		r.Device, len(names), 100*low, 100*high)
}
