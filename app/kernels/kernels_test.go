package kernels

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"calla/bundle/demo"
	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/metal"
)

// emulated returns the emulated GPU, or skips.
func emulated(t *testing.T) metal.Driver {
	t.Helper()
	path := filepath.Join("..", "..", "build", "emulator", "libcalla-emulated.so")
	if _, err := os.Stat(path); err != nil {
		t.Skip("no emulated device: run scripts/emulator first")
	}
	d, err := metal.OpenEmulated(path)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func report(t *testing.T, d metal.Driver) *Report {
	t.Helper()
	c, err := checkpoint.Open(demo.Source(), checkpoint.Options{Exact: []checkpoint.Config{demo.Config}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	r, err := Run(context.Background(), d, c, Options{}, func(s string) { t.Log(s) })
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// The short form, on the emulated device: all is well, and nothing was left out.
func TestRun(t *testing.T) {
	r := report(t, emulated(t))
	for _, c := range r.Checks {
		if !c.OK {
			t.Errorf("failed: %v", c)
		}
	}
	if !r.OK || r.Layers != 4 || r.Copy <= 0 || len(r.Checks) < 20 {
		t.Errorf("%d layers, copy %g, %d checks, all well: %v; want 4, a rate, many and well", r.Layers, r.Copy, len(r.Checks), r.OK)
	}
	shared := 0
	for _, k := range r.Kernels {
		if k.Runs == 0 || k.Checks == 0 || k.Time <= 0 || !k.OK {
			t.Errorf("%+v: want it run, checked and timed", k)
		}
		if k.Share > 0 {
			shared++
		}
	}
	if shared < 6 {
		t.Errorf("%d kernels have a share of the bandwidth, want those of decode that weights or states bound", shared)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Errorf("the report is no JSON: %v", err)
	}
}

// A model whose weights were drawn by lot runs as one from files does. Its sizes
// here are the demo's; those of the published model are the same code.
func TestRunOfAMadeModel(t *testing.T) {
	c := demo.Config
	c.Layers, c.FullAttentionInterval = 2, 2
	r, err := Run(context.Background(), emulated(t), Made(c), Options{}, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if !r.OK || r.Layers != 2 {
		t.Errorf("%d layers, all well: %v; want 2 and well: %+v", r.Layers, r.OK, r.Checks)
	}
}

// lame is a GPU on which one kernel does nothing.
type lame struct {
	metal.Driver
	kernel string
}

func (l lame) Commit(list *metal.List) (metal.Completion, error) {
	rest := &metal.List{}
	for _, d := range list.Dispatches {
		if !strings.HasPrefix(d.Kernel.Name, l.kernel) {
			rest.Dispatches = append(rest.Dispatches, d)
		}
	}
	return l.Driver.Commit(rest)
}

// A kernel that does nothing is found, and named.
func TestRunFindsAFault(t *testing.T) {
	for _, kernel := range []string{"delta_step", "combine_rows", "argmax", "attend_spans"} {
		t.Run(kernel, func(t *testing.T) {
			r := report(t, lame{emulated(t), kernel})
			named := slices.ContainsFunc(r.Kernels, func(k Kernel) bool {
				return strings.HasPrefix(k.Name, kernel) && !k.OK && k.Failed > 0
			})
			if r.OK || !named {
				t.Errorf("all well: %v; the kernel is named: %v", r.OK, named)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	nan := float32(math.NaN())
	// 64 rows of 32 values of size 1.
	all := func(change func(i int, v float32) float32) *rows {
		r := &rows{width: 32}
		for i := range 64 * 32 {
			v := float32(1)
			if i%3 == 0 {
				v = -1
			}
			r.all = append(r.all, change(i, v))
		}
		return r
	}
	same := func(_ int, v float32) float32 { return v }
	for _, tt := range []struct {
		name   string
		value  string
		change func(i int, v float32) float32
		want   bool
	}{
		{"equal", "residual", same, true},
		{"rounding", "residual", func(i int, v float32) float32 { return v * (1 + 0.02*float32(i%3-1)) }, true},
		{"everything a little too large", "residual", func(_ int, v float32) float32 { return v * 1.1 }, false},
		{"a column of zeros", "residual", func(i int, v float32) float32 {
			if i%32 == 5 {
				return 0
			}
			return v
		}, false},
		{"not a number", "residual", func(i int, v float32) float32 {
			if i == 77 {
				return nan
			}
			return v
		}, false},
		{"another expert in one row", chosenExperts, func(i int, v float32) float32 {
			if i == 64 {
				return 9
			}
			return v
		}, true},
		{"other experts in every row", chosenExperts, func(i int, v float32) float32 {
			if i%8 == 0 {
				return 9
			}
			return v
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := check(place{backend.Decode, 1, tt.value}, all(tt.change), all(same))
			if c.OK != tt.want {
				t.Errorf("%v: OK is %v, want %v", c, c.OK, tt.want)
			}
		})
	}
	if c := check(place{}, &rows{width: 1, all: []float32{1}}, &rows{width: 1}); c.OK {
		t.Error("values that are missing are OK")
	}
}

func TestShare(t *testing.T) {
	for _, tt := range []struct {
		name       string
		less, more took
		n          int
		each       time.Duration
		told       bool
	}{
		{"longer by more than runs differ", took{100, 3}, took{140, 5}, 4, 10, true},
		{"longer by what runs differ", took{100, 4}, took{108, 4}, 4, 4, false},
		{"shorter", took{100, 4}, took{90, 8}, 4, 3, false},
		{"of a clock with long ticks", took{100, 0}, took{100, 0}, 4, 1, false},
		{"less than a tick of many", took{100, 0}, took{101, 0}, 40, 1, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if each, told := share(tt.less, tt.more, tt.n); each != tt.each || told != tt.told {
				t.Errorf("%d, told %v; want %d, %v", each, told, tt.each, tt.told)
			}
		})
	}
}
