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
	"calla/app/whole"
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

// gpu checks the kernels of the settings' GPU, prints what it found and writes it to
// a file. It reports whether all is well. Settings that are wrong and a file that
// can't be written are refused first; one that an interrupt leaves as it was.
func (d *doctor) gpu(ctx context.Context, out io.Writer, file string) (bool, error) {
	backends, err := d.gpuBackends()
	if err == nil {
		err = whole.Check(file)
	}
	if err != nil {
		return false, usageError{err}
	}
	r := &gpuReport{
		Command: "calla doctor --gpu", Version: version, Revision: revision(), At: time.Now().UTC(),
		Threads: runtime.GOMAXPROCS(0),
	}
	r.System, r.Machine = systemName()
	err = d.checkGPU(ctx, out, backends, r)
	if err != nil && ctx.Err() != nil {
		return false, err
	}
	if err != nil {
		r.Error = withoutPlace(err.Error())
		r.Verdict = "no verdict: " + r.Error
	}
	ok := err == nil && r.GPU.OK
	if err = errors.Join(err, r.print(out), r.write(file)); err == nil {
		_, err = fmt.Fprintf(out, "written to %s, which holds numbers and names of kernels alone\n", file)
	}
	return ok, err
}

// checkGPU fills in what the run finds.
func (d *doctor) checkGPU(ctx context.Context, out io.Writer, backends []string, r *gpuReport) error {
	driver, name, err := d.openDriver(backends)
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

// gpuBackends are those of the settings, in the order in which they are tried.
func (d *doctor) gpuBackends() ([]string, error) {
	all := []string{"metal", "cuda", "emulated"}
	switch {
	case d.backend == "auto":
		return all, nil
	case slices.Contains(all, d.backend):
		return []string{d.backend}, nil
	}
	return nil, fmt.Errorf("backend %q is no GPU: want auto, metal, cuda or emulated", d.backend)
}

// openDriver returns the first GPU there is of some backends, and of which one.
func (d *doctor) openDriver(backends []string) (metal.Driver, string, error) {
	open := map[string]func() (metal.Driver, error){
		"metal":    openApple,
		"cuda":     func() (metal.Driver, error) { return metal.OpenCUDA(d.ptx) },
		"emulated": func() (metal.Driver, error) { return metal.OpenEmulated(d.emulator) },
	}
	var all []error
	for _, name := range backends {
		driver, err := open[name]()
		if err == nil {
			return driver, name, nil
		}
		all = append(all, err)
	}
	return nil, "", errors.Join(all...)
}

// withoutPlace takes what names a person or a machine out of paths: the home folder
// and the one that this program was started in, whichever is in the other first.
func withoutPlace(text string) string {
	home, _ := os.UserHomeDir()
	here, _ := os.Getwd()
	names := []string{home, "~", here, "."}
	if len(here) > len(home) {
		names = []string{here, ".", home, "~"}
	}
	for i := 0; i < len(names); i += 2 {
		if len(names[i]) > 1 {
			text = strings.ReplaceAll(text, names[i], names[i+1])
		}
	}
	return text
}

func (r *gpuReport) write(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return whole.WriteText(file, 0o644, string(text)+"\n")
}

// print shows the kernels, where they ran, and the verdict.
func (r *gpuReport) print(w io.Writer) error {
	if r.GPU != nil {
		if err := printKernels(w, r.GPU); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.Verdict)
	return err
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
			share = fmt.Sprintf("%4s %% of a copy's rate", percent(k.Share))
		}
		_, err := fmt.Fprintf(w, "%-3s  %-34s %-7s %4d runs %10s µs  %s\n", mark, k.Name, k.Phase, k.Runs, microseconds(k), share)
		if err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(w, "copy %.1f GB/s\n", r.Copy/1e9)
	return err
}

// microseconds is the time of a kernel, with more digits where it is short, and none
// where it never ran.
func microseconds(k kernels.Kernel) string {
	digits, sign := 1, ""
	if k.Time < 1e-6 {
		digits = 3
	}
	if k.AtMost {
		sign = "<"
	}
	if k.Runs == 0 {
		return "-"
	}
	return fmt.Sprintf("%s%.*f", sign, digits, k.Time*1e6)
}

// percent is a share without its sign, with two digits where it is small.
func percent(share float64) string {
	if share < 0.0995 {
		return fmt.Sprintf("%.2g", 100*share)
	}
	return fmt.Sprintf("%.0f", 100*share)
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
	return fmt.Sprintf("verdict: good on %s: %d kernels compute what the processor does; decode reads at %s to %s %% of a copy's rate",
		r.Device, len(names), percent(low), percent(high))
}
