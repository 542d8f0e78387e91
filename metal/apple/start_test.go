package apple

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"calla/metal"
	"calla/shaders"
)

// TestRequired names what a device or a system lacks, and leaves nothing behind.
func TestRequired(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*fake)
		want   string
	}{
		{"no device", func(f *fake) { f.faults.device = true }, "no Metal device"},
		{"an Intel Mac", func(f *fake) { f.told.Name, f.told.Family = "AMD Radeon Pro 5500M", 0 }, "AMD Radeon Pro 5500M is of family Apple0, want Apple7"},
		{"an A13", func(f *fake) { f.told.Family = 6 }, "family Apple6, want Apple7 or newer"},
		{"memory of its own", func(f *fake) { f.told.Unified = 0 }, "memory of its own"},
		{"macOS 13", func(f *fake) { f.told.OS = "13.7.1" }, "macOS 13.7.1, want 14 or newer"},
		{"a system without a version", func(f *fake) { f.told.OS = "" }, "want 14 or newer"},
		{"no queue", func(f *fake) { f.faults.queue = true }, "no command queue"},
		{"no fence", func(f *fake) { f.faults.fence = true }, "no fence"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, nil)
			tt.change(f)
			_, err := newDriver(f, Options{})
			wants(t, err, tt.want)
			if f.live() != 0 {
				t.Errorf("left: %s", f.kinds())
			}
		})
	}
}

// TestOldest starts on the oldest that is supported, without what came later.
func TestOldest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*fake)
	}{
		{"macOS 14 on an M1", func(f *fake) { f.told.OS, f.told.Family, f.told.Residency = "14.0", 7, 0 }},
		{"a virtual machine", func(f *fake) { f.told.Virtual = true }},
		{"a residency set that fails", func(f *fake) { f.faults.residency = true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.change, Options{})
			if err := b.commit(t, 3).Wait(); err != nil {
				t.Error(err)
			}
			if n := b.fake.count("wire true"); n != 0 {
				t.Errorf("%d requests for residency", n)
			}
			b.close(t)
		})
	}
}

// TestMatrixUnits says which devices have matrix units that can be used.
func TestMatrixUnits(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*fake)
		want   bool
		says   string
	}{
		{"an M3 on macOS 15", func(f *fake) {}, false, "Apple M3 Max"},
		{"an M3 on macOS 26", func(f *fake) { f.told.Metal4 = 1 }, false, "Apple M3 Max"},
		{"an M5 on a system without Metal 4", func(f *fake) { f.told.Family = 10 }, false, "Apple M3 Max"},
		{"an M5 on macOS 26", func(f *fake) { f.told.Family, f.told.Metal4 = 10, 1 }, true, "Apple M3 Max (matrix units)"},
		{"an M5 whose compiler refuses", func(f *fake) {
			f.told.Family, f.told.Metal4 = 10, 1
			f.faults.compile = map[string]string{"tensor_matmul.metal": "tensor_matmul.metal:40:3: error: no member"}
		}, false, "matrix units unused: metal: tensor_matmul.metal, line 40"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, tt.change, Options{})
			if got := b.MatrixUnits(); got != tt.want {
				t.Errorf("matrix units %v, want %v", got, tt.want)
			}
			if name := b.Name(); !strings.Contains(name, tt.says) {
				t.Errorf("name %q, want %q in it", name, tt.says)
			}
			if err := b.Prepare([]metal.Kernel{{Name: "tensor_matmul"}}); (err == nil) != tt.want {
				t.Errorf("tensor_matmul: %v", err)
			}
			b.close(t)
		})
	}
}

// TestCompileErrors names file, line and kernel, and leaves nothing behind.
func TestCompileErrors(t *testing.T) {
	for _, tt := range []struct {
		name   string
		faults faults
		want   []string
	}{
		{"in a source", faults{compile: map[string]string{"embed.metal": "embed.metal:20:5: error: use of undeclared identifier 'x'"}},
			[]string{"embed.metal, line 20, kernel embed does not compile", "undeclared identifier"}},
		{"in a header", faults{compile: map[string]string{"embed.metal": "\nIn file included from x\ncommon.h:12:1: fatal error: unknown type"}},
			[]string{"common.h, line 12, included by embed.metal does not compile"}},
		{"without a place", faults{compile: map[string]string{"norm.metal": "the compiler service is gone"}},
			[]string{"norm.metal does not compile", "service is gone"}},
		{"in two sources", faults{compile: map[string]string{"norm.metal": "no", "embed.metal": "no"}},
			[]string{"norm.metal does not", "embed.metal does not"}},
		{"for the device", faults{pipeline: map[string]string{"argmax": "too many registers"}},
			[]string{"kernel argmax does not compile for Apple M3 Max", "too many registers"}},
		{"of a width that no kernel is for", faults{lanes: 64}, []string{"kernel argmax", "64 lanes", "want 32"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := newFake(t, nil)
			f.faults = tt.faults
			d := open(t, f, Options{})
			wants(t, d.Prepare([]metal.Kernel{{Name: "embed"}, {Name: "argmax"}}), tt.want...)
			if err := d.Close(); err != nil {
				t.Error(err)
			}
			if f.live() != 0 {
				t.Errorf("left: %s", f.kinds())
			}
		})
	}
	t.Run("no such kernel", func(t *testing.T) {
		d := open(t, newFake(t, nil), Options{})
		wants(t, d.Prepare([]metal.Kernel{{Name: "softmax"}}), "no source has a kernel softmax")
	})
}

// TestSources compiles each source once, and says of every line which file it is.
func TestSources(t *testing.T) {
	b := newBench(t, nil, Options{})
	if err := b.Prepare([]metal.Kernel{{Name: "embed"}}); err != nil {
		t.Fatal(err)
	}
	if got, want := b.fake.count("compile"), len(shaders.Names())-1; got != want {
		t.Errorf("%d sources compiled, want the %d that need no matrix units, once", got, want)
	}
	for _, o := range b.fake.objects {
		if o.kind == "library" && !strings.HasPrefix(o.source, "#line 1 \"") {
			t.Errorf("a source begins with %.40q", o.source)
		}
	}
	b.close(t)
}

// TestReleaseLibrary takes a release's library where it loads, else the sources.
func TestReleaseLibrary(t *testing.T) {
	for _, tt := range []struct {
		name            string
		file, broken    bool
		loads, compiles int
	}{
		{"there", true, false, 1, 0},
		{"not there", false, false, 0, len(shaders.Names()) - 1},
		{"for another system", true, true, 1, len(shaders.Names()) - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			if tt.file {
				if err := os.WriteFile(filepath.Join(dir, "calla.metallib"), []byte("kernel void argmax("), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			b := newBench(t, func(f *fake) { f.faults.load = tt.broken }, Options{Libraries: dir})
			if b.fake.count("load") != tt.loads || b.fake.count("compile") != tt.compiles {
				t.Errorf("%d libraries loaded and %d sources compiled, want %d and %d",
					b.fake.count("load"), b.fake.count("compile"), tt.loads, tt.compiles)
			}
			b.close(t)
		})
	}
}
