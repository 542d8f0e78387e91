package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"calla/app/kernels"
)

// The whole command on the emulated device: a verdict, and a file that says
// nothing of people.
func TestDoctorGPU(t *testing.T) {
	library := filepath.Join("..", "build", "emulator", "libcalla-emulated.so")
	if _, err := os.Stat(library); err != nil {
		t.Skip("no emulated device: run scripts/emulator first")
	}
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
		if text, _ := os.ReadFile(file); !strings.Contains(string(text), "no verdict") || strings.Contains(string(text), home) {
			t.Errorf("%s: the file says %s", backend, text)
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
