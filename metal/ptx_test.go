//go:build linux

package metal

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"calla/bundle/demo"
	"calla/core/checkpoint"
)

// TestPTX checks that every kernel of the model, at several sizes, is among the
// PTX and takes its function constants.
func TestPTX(t *testing.T) {
	dir := filepath.Join("..", "build", "cuda")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no PTX: run scripts/emulator --cuda first")
	}
	sources, err := readPTX(dir)
	if err != nil {
		t.Fatal(err)
	}
	other := checkpoint.Published
	other.HeadDim, other.DeltaKeyDim, other.DeltaValueDim = 64, 64, 128
	for name, c := range map[string]checkpoint.Config{
		"published": checkpoint.Published, "demo": demo.Config, "other": other,
	} {
		for _, k := range newShapes(c).kernels(false) {
			source := sources[k.Name]
			if source == nil {
				t.Errorf("%s: no kernel %v", name, k)
			} else if _, err := source.Specialise(k.Name, k.Constants); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// A folder that is not there is named whole, and the names in it are taken as they
// are.
func TestListPTX(t *testing.T) {
	t.Chdir(t.TempDir())
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := listPTX("none"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), filepath.Join(here, "none")) {
		t.Errorf("error %v, want one with the folder", err)
	}
	if err := errors.Join(
		os.Mkdir("[k]", 0o700), os.WriteFile("[k]/a.ptx", nil, 0o600), os.WriteFile("[k]/b.txt", nil, 0o600),
		syscall.Mkfifo("[k]/c.ptx", 0o600),
	); err != nil {
		t.Fatal(err)
	}
	if got, err := listPTX("[k]"); err != nil || len(got) != 1 || got[0] != filepath.Join(here, "[k]", "a.ptx") {
		t.Errorf("%q, %v; want a.ptx alone", got, err)
	}
}

func TestReadPTX(t *testing.T) {
	dir := t.TempDir()
	if _, err := readPTX(dir); err == nil {
		t.Error("an empty folder was taken")
	}
	if err := os.WriteFile(filepath.Join(dir, "a.ptx"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := readPTX(dir); err == nil {
		t.Error("a file without kernels was taken")
	}
}
