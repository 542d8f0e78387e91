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
	if err := d.findModel(); err != nil {
		return modelError{err}
	}
	c, err := d.openCheckpoint()
	if err != nil {
		return modelError{err}
	}
	defer c.Close()
	r.Model = "another"
	if d.settings.model == "demo" {
		r.Model = d.settings.model
	} else if c.Config() == checkpoint.Published {
		r.Model = publishedID
	}
	driver, thorough, err := d.openDriver()
	if err != nil {
		return usageError{err}
	}
	r.Budget, r.Total = driver.Memory()
	machine := power.New()
	before := machine.Condition()
	r.GPU, err = kernels.Run(ctx, driver, c, thorough, func(what string) { fmt.Fprintln(out, what) })
	after := machine.Condition()
	r.Thermal, r.LowPower = [2]string{string(before.Thermal), string(after.Thermal)}, after.LowPower
	if err == nil {
		r.Verdict = verdict(r.GPU)
	}
	return err
}

// openDriver returns the GPU that the settings mean, and how thorough a check it
// bears. Auto is the first there is.
func (d *doctor) openDriver() (metal.Driver, kernels.Options, error) {
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
			return nil, kernels.Options{}, fmt.Errorf("backend %q is no GPU: want auto, metal, cuda or emulated", name)
		}
		driver, err := open[name]()
		if err == nil {
			o := kernels.Thorough
			if name == "emulated" {
				o = kernels.Options{} // its times say nothing
			}
			return driver, o, nil
		}
		all = append(all, err)
	}
	return nil, kernels.Options{}, errors.Join(all...)
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
	low, high := 0.0, 0.0
	for _, k := range r.Kernels {
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
		return fmt.Sprintf("verdict: WRONG on %s: %d of %d kernels: %s", r.Device, len(wrong), len(r.Kernels), strings.Join(wrong, ", "))
	}
	return fmt.Sprintf("verdict: good on %s: %d kernels compute what the processor does; decode reads at %.0f to %.0f %% of a copy's rate",
		r.Device, len(r.Kernels), 100*low, 100*high)
}
