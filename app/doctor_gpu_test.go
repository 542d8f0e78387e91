package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"calla/app/kernels"
)

// emulatedLibrary is the library of the emulated device, or skips.
func emulatedLibrary(t *testing.T) string {
	t.Helper()
	library := filepath.Join("..", "build", "emulator", "libcalla-emulated.so")
	if _, err := os.Stat(library); err != nil {
		t.Skip("no emulated device: run scripts/emulator first")
	}
	return library
}

// The whole command on the emulated device: a verdict, and a file that says
// nothing of people.
func TestDoctorGPU(t *testing.T) {
	library := emulatedLibrary(t)
	file := filepath.Join(t.TempDir(), "report.json")
	cmd := newDoctor()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs([]string{"--gpu", "--model", "demo", "--backend", "emulated", "--emulator", library, "--report", file})
	if err := cmd.ExecuteContext(context.Background()); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "verdict: good on emulated Apple GPU") || !strings.Contains(out.String(), "% of a copy's rate") {
		t.Errorf("output without a verdict or shares:\n%s", out.String())
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var r gpuReport
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	if r.GPU == nil || !r.GPU.OK || len(r.GPU.Kernels) < 20 || r.Model != "demo" || r.Verdict == "" || r.Version == "" || r.System == "" {
		t.Errorf("report %s", text)
	}
	if host, _ := os.Hostname(); host != "" && len(host) > 3 && bytes.Contains(text, []byte(host)) {
		t.Errorf("the report names the machine, %s", host)
	}
	if bytes.Contains(text, []byte(library)) || bytes.Contains(text, []byte(filepath.Dir(file))) {
		t.Error("the report has a path of this machine")
	}
}

func TestDoctorGPUWithoutOne(t *testing.T) {
	for backend, want := range map[string]string{"cpu": "is no GPU", "emulated": "none.so"} {
		file := filepath.Join(t.TempDir(), "report.json")
		home := t.TempDir()
		t.Setenv("HOME", home)
		d := doctor{settings: settings{model: "demo", backend: backend, emulator: filepath.Join(home, "none.so")}}
		ok, err := d.gpu(context.Background(), &bytes.Buffer{}, file)
		var usage usageError
		if ok || !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v; want a usage error with %q", backend, ok, err, want)
		}
		text, err := os.ReadFile(file)
		if backend == "cpu" { // a mistake, of which nobody wants a report
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("cpu: the file says %s, %v", text, err)
			}
			continue
		}
		if !strings.Contains(string(text), "no verdict") || strings.Contains(string(text), home) {
			t.Errorf("%s: the file says %s", backend, text)
		}
	}
}

// A report that can't be written is found before the work where it can be, and
// else behind what was found.
func TestDoctorGPUWithoutReport(t *testing.T) {
	dir := t.TempDir()
	d := doctor{settings: settings{model: "demo", backend: "emulated", emulator: filepath.Join(dir, "none.so")}}
	for _, tt := range []struct{ name, file, prints, want string }{
		{"no folder", filepath.Join(dir, "none", "x.json"), "", "no such file or directory"},
		{"a folder", dir, "", "is a directory"},
		{"a full disk", "/dev/full", "no verdict", "no space left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if _, err := os.Stat(tt.file); tt.prints != "" && err != nil {
				t.Skip("no such device here")
			}
			var out bytes.Buffer
			ok, err := d.gpu(context.Background(), &out, tt.file)
			if ok || err == nil || !strings.Contains(err.Error(), "write "+tt.file+": "+tt.want) {
				t.Errorf("%v, %v; want %q of the file", ok, err, tt.want)
			}
			if (out.Len() > 0) != (tt.prints != "") || !strings.Contains(out.String(), tt.prints) {
				t.Errorf("it printed %q, want %q", out.String(), tt.prints)
			}
		})
	}
}

// Ctrl-C leaves the report of an earlier run as it is.
func TestDoctorGPUInterrupted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "report.json")
	if err := os.WriteFile(file, []byte("earlier"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(context.Background())
	interrupt()
	d := doctor{settings: settings{model: "demo", backend: "emulated", emulator: emulatedLibrary(t)}}
	if ok, err := d.gpu(ctx, io.Discard, file); ok || !errors.Is(err, context.Canceled) {
		t.Errorf("%v, %v; want it interrupted", ok, err)
	}
	if text, err := os.ReadFile(file); string(text) != "earlier" {
		t.Errorf("the report says %s, %v", text, err)
	}
}

func TestWithoutPlace(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	for _, tt := range []struct{ here, text, want string }{
		{home, home + "/a.so", "~/a.so"},
		{filepath.Dir(home), home + "/a.so", "~/a.so"},
		{filepath.Join(home, "calla"), home + "/calla/build/a.so beside " + home + "/b.so", "./build/a.so beside ~/b.so"},
		{os.TempDir(), "nothing", "nothing"},
	} {
		if err := os.MkdirAll(tt.here, 0o700); err != nil {
			t.Fatal(err)
		}
		t.Chdir(tt.here)
		if got := withoutPlace(tt.text); got != tt.want {
			t.Errorf("in %s: %q, want %q", tt.here, got, tt.want)
		}
	}
}

func TestKernelNumbers(t *testing.T) {
	for _, tt := range []struct {
		k                   kernels.Kernel
		microseconds, share string
	}{
		{kernels.Kernel{Runs: 1, Time: 12.34e-6, Share: 0.456}, "12.3", "46"},
		{kernels.Kernel{Runs: 1, Time: 0.04e-6, Share: 0.00034}, "0.040", "0.034"},
		{kernels.Kernel{Runs: 1, Time: 0.04e-6, AtMost: true, Share: 0.0994}, "<0.040", "9.9"},
		{kernels.Kernel{Runs: 1, Time: 3e-6, AtMost: true, Share: 0.0996}, "<3.0", "10"},
		{kernels.Kernel{}, "-", "0"},
	} {
		if got, share := microseconds(tt.k), percent(tt.k.Share); got != tt.microseconds || share != tt.share {
			t.Errorf("%+v: %s µs, %s %%; want %s, %s", tt.k, got, share, tt.microseconds, tt.share)
		}
	}
}

func TestVerdict(t *testing.T) {
	good := kernels.Kernel{Name: "head", OK: true, Share: 0.9}
	r := &kernels.Report{Device: "Apple M9", OK: true, Kernels: []kernels.Kernel{good, {Name: "argmax", OK: true}, {Name: "x", OK: true, Share: 0.456}}}
	if got, want := verdict(r), "verdict: good on Apple M9: 3 kernels compute what the processor does; decode reads at 46 to 90 % of a copy's rate"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	r.OK, r.Kernels[1].OK = false, false
	if got, want := verdict(r), "verdict: WRONG on Apple M9: 1 of 3 kernels: argmax"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
