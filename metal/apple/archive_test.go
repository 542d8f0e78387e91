package apple

import (
	"os"
	"path/filepath"
	"testing"

	"calla/metal"
)

// archives lists a folder.
func archives(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// started starts a driver with an archive in dir, makes two kernels and returns how
// many of them were compiled, those for a new archive included.
func started(t *testing.T, dir string, change func(*fake), kernels ...metal.Kernel) int {
	t.Helper()
	f := newFake(t, nil)
	if change != nil {
		change(f)
	}
	d := open(t, f, Options{Cache: dir})
	if kernels == nil {
		kernels = []metal.Kernel{{Name: "embed"}, {Name: "project_add", Constants: [4]uint32{64}}}
	}
	if err := d.Prepare(kernels); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if f.live() != 0 {
		t.Errorf("left: %s", f.kinds())
	}
	return f.count("compiled pipeline")
}

// TestArchive keeps pipelines from one start to the next.
func TestArchive(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pipelines")
	if n := started(t, dir, nil); n != 4 {
		t.Errorf("the first start: %d compiled, want two, and two into the archive", n)
	}
	files := archives(t, dir)
	if len(files) != 1 {
		t.Fatalf("files %q, want one", files)
	}
	if n := started(t, dir, nil); n != 0 {
		t.Errorf("the second start: %d compiled", n)
	}
	if n := started(t, dir, nil, metal.Kernel{Name: "project_add", Constants: [4]uint32{128}}); n != 2 {
		t.Errorf("another constant: %d compiled, want it and its copy in the archive", n)
	}
	if got := archives(t, dir); len(got) != 1 || got[0] != files[0] {
		t.Errorf("files %q, want %q", got, files)
	}
	if n := started(t, dir, func(f *fake) { f.told.Build = "25A100" }); n != 4 {
		t.Errorf("after an update of the system: %d compiled", n)
	}
	if got := archives(t, dir); len(got) != 1 || got[0] == files[0] {
		t.Errorf("files %q, want another one alone", got)
	}
}

// TestBrokenArchive drops an archive with anything wrong, and starts all the same.
func TestBrokenArchive(t *testing.T) {
	fill := func(content string) func(t *testing.T, dir string) {
		return func(t *testing.T, dir string) {
			started(t, dir, nil)
			if err := os.WriteFile(archives(t, dir)[0], []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	none := func(*testing.T, string) {}
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T, dir string)
		change  func(*fake)
		left    int // files
		again   int // compiled in the start after that
	}{
		{"it does not open", fill("archive"), func(f *fake) { f.faults.archive = true }, 1, 0},
		{"it is cut short", fill("ar"), nil, 1, 0},
		{"it lacks a kernel", fill("archive\nembed[0,0,0,0]"), nil, 1, 0},
		{"it lacks a kernel and takes none", fill("archive\nembed[0,0,0,0]"), func(f *fake) { f.faults.add = true }, 0, 4},
		{"it takes no kernel", none, func(f *fake) { f.faults.add = true }, 0, 4},
		{"it is not written", none, func(f *fake) { f.faults.save = true }, 0, 4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			tt.prepare(t, dir)
			if n := started(t, dir, tt.change); n == 0 {
				t.Error("nothing was compiled")
			}
			if got := archives(t, dir); len(got) != tt.left {
				t.Errorf("files %q, want %d", got, tt.left)
			}
			if n := started(t, dir, nil); n != tt.again {
				t.Errorf("the next start: %d compiled, want %d", n, tt.again)
			}
		})
	}
	t.Run("its folder cannot be made", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		started(t, filepath.Join(file, "pipelines"), nil)
	})
}
