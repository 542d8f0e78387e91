package whole

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// folder makes one with a file, a link to it, a link to a device and a folder.
func folder(t *testing.T) string {
	dir := t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o600),
		os.Symlink("old", filepath.Join(dir, "link")),
		os.Symlink(os.DevNull, filepath.Join(dir, "null")),
		os.Mkdir(filepath.Join(dir, "folder"), 0o700),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

// look compares what the folder has with what it should.
func look(t *testing.T, dir, old string, files int) {
	t.Helper()
	if got, err := os.ReadFile(filepath.Join(dir, "old")); string(got) != old {
		t.Errorf("the old file has %q, %v; want %q", got, err, old)
	}
	if link, err := os.Lstat(filepath.Join(dir, "link")); err != nil || link.Mode()&fs.ModeSymlink == 0 {
		t.Errorf("the link is one no more: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != files {
		t.Errorf("the folder has %v, want %d", left, files)
	}
}

func TestWrite(t *testing.T) {
	for _, tt := range []struct {
		name, path string
		old        string // what the old file has then
		files      int
		err        string
	}{
		{"a new file", "new", "old", 5, ""},
		{"in place of another", "old", "new", 4, ""},
		{"through a link", "link", "new", 4, ""},
		{"a device", "null", "old", 4, ""},
		{"a folder", "folder", "old", 4, "is a directory"},
		{"in no folder", "none/new", "old", 4, "no such file or directory"},
		{"behind a file", "old/new", "old", 4, "not a directory"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := folder(t)
			path := filepath.Join(dir, tt.path)
			checked := Check(path)
			look(t, dir, "old", 4)
			wrote := WriteText(path, 0o600, "new")
			look(t, dir, tt.old, tt.files)
			for what, err := range map[string]error{"Check": checked, "Write": wrote} {
				if tt.err == "" && err != nil || tt.err != "" && (err == nil || err.Error() != "write "+path+": "+tt.err) {
					t.Errorf("%s: error %v, want %q of %s", what, err, tt.err, path)
				}
			}
		})
	}
}

func TestWriteOfHalf(t *testing.T) {
	dir, full := folder(t), errors.New("disk full")
	err := Write(filepath.Join(dir, "old"), 0o600, func(w io.Writer) error {
		io.WriteString(w, "ne")
		return full
	})
	if !errors.Is(err, full) || !strings.HasPrefix(err.Error(), "write "+dir) {
		t.Errorf("error %v, want %v of the file", err, full)
	}
	look(t, dir, "old", 4)
}

func TestMode(t *testing.T) {
	path := filepath.Join(folder(t), "old")
	for _, mode := range []fs.FileMode{0o400, 0o600} {
		if err := WriteText(path, mode, "new"); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("mode %v, %v; want %v", info.Mode(), err, mode)
		}
	}
}
