package checkpoint_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"calla/core/checkpoint"
	"calla/core/checkpoint/checkpointtest"
)

// place puts the small checkpoint's files where a test wants them.
func place(t *testing.T, dir string) {
	t.Helper()
	mkdir(t, dir)
	if err := checkpointtest.New(checkpointtest.Small, 2).Write(dir); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o777); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, to, from string) {
	t.Helper()
	if err := os.Symlink(to, from); err != nil {
		t.Skipf("no links here: %v", err)
	}
}

// hub lays files out as the cache of the Hugging Face Hub does: blobs named by
// their digest, and a snapshot of links that lead out of its folder.
func hub(t *testing.T, root string) (snapshot string) {
	t.Helper()
	repository := filepath.Join(root, "models--mlx-community--Qwen3.6-35B-A3B-4bit")
	blobs := filepath.Join(repository, "blobs")
	snapshot = filepath.Join(repository, "snapshots", "38740b847e4c")
	place(t, blobs)
	mkdir(t, snapshot)
	files, err := os.ReadDir(blobs)
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range files {
		blob := fmt.Sprintf("%064x", i)
		if err := os.Rename(filepath.Join(blobs, f.Name()), filepath.Join(blobs, blob)); err != nil {
			t.Fatal(err)
		}
		link(t, filepath.Join("..", "..", "blobs", blob), filepath.Join(snapshot, f.Name()))
	}
	return snapshot
}

// TestLayouts opens the same checkpoint from wherever people keep one.
func TestLayouts(t *testing.T) {
	for _, tt := range []struct {
		name   string
		layout func(t *testing.T, root string) (path string)
		want   string // its name
	}{
		{"flat", func(t *testing.T, root string) string {
			place(t, filepath.Join(root, "qwen"))
			return filepath.Join(root, "qwen")
		}, "qwen"},
		{"a slash at the end", func(t *testing.T, root string) string {
			place(t, filepath.Join(root, "qwen"))
			return filepath.Join(root, "qwen") + "/"
		}, "qwen"},
		{"blanks and other scripts", func(t *testing.T, root string) string {
			dir := filepath.Join(root, "Модель ⌘", "é 4bit", "モデル")
			place(t, dir)
			return dir
		}, "モデル"},
		{"a decomposed name", func(t *testing.T, root string) string {
			place(t, filepath.Join(root, "e\u0301"))
			return filepath.Join(root, "e\u0301")
		}, "e\u0301"},
		{"a Hub cache", hub, "mlx-community/Qwen3.6-35B-A3B-4bit"},
		{"a link to the folder", func(t *testing.T, root string) string {
			place(t, filepath.Join(root, "real"))
			link(t, filepath.Join(root, "real"), filepath.Join(root, "link"))
			return filepath.Join(root, "link")
		}, "link"},
		{"a link to a link to a Hub cache", func(t *testing.T, root string) string {
			link(t, hub(t, root), filepath.Join(root, "one"))
			link(t, "one", filepath.Join(root, "two"))
			return filepath.Join(root, "two")
		}, "two"},
		{"shards on another volume", func(t *testing.T, root string) string {
			dir, other := filepath.Join(root, "a"), filepath.Join(root, "volume")
			place(t, dir)
			mkdir(t, other)
			for _, name := range []string{first, second} {
				if err := os.Rename(filepath.Join(dir, name), filepath.Join(other, name)); err != nil {
					t.Fatal(err)
				}
				link(t, filepath.Join(other, name), filepath.Join(dir, name))
			}
			return dir
		}, "a"},
		{"read-only", func(t *testing.T, root string) string {
			dir := filepath.Join(root, "ro")
			place(t, dir)
			for _, name := range []string{first, second, "config.json"} {
				if err := os.Chmod(filepath.Join(dir, name), 0o444); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, 0o555); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(dir, 0o777) })
			return dir
		}, "ro"},
		{"folders beside the files", func(t *testing.T, root string) string {
			dir := filepath.Join(root, "x")
			place(t, dir)
			mkdir(t, filepath.Join(dir, "model-old.safetensors"))
			return dir
		}, "x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, err := checkpoint.Open(checkpoint.Dir(tt.layout(t, t.TempDir())), anySize)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Name(); got != tt.want {
				t.Errorf("name %q, want %q", got, tt.want)
			}
			w, _ := c.Weight("language_model.model.norm.weight")
			if got := len(w.Bytes()); got != 128 {
				t.Errorf("%d bytes of the last norm, want 128", got)
			}
			if err := c.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			if err := c.Close(); err != nil {
				t.Errorf("close again: %v", err)
			}
		})
	}
}

// TestRefuseFolders goes through paths that are no folder of a checkpoint.
func TestRefuseFolders(t *testing.T) {
	write := func(t *testing.T, path, content string) string {
		t.Helper()
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, tt := range []struct {
		name  string
		path  func(t *testing.T, root string) string
		words []string
	}{
		{"nothing there", func(t *testing.T, root string) string { return filepath.Join(root, "no") }, []string{"no such folder"}},
		{"an empty path", func(t *testing.T, root string) string { return "" }, []string{"no such folder"}},
		{"a GGUF file", func(t *testing.T, root string) string {
			return write(t, filepath.Join(root, "model.gguf"), "GGUF\x03")
		}, []string{"model.gguf", "a GGUF file, want a folder", repository}},
		{"a safetensors file", func(t *testing.T, root string) string {
			place(t, root)
			return filepath.Join(root, first)
		}, []string{"a single safetensors file, want a folder", repository}},
		{"another file", func(t *testing.T, root string) string {
			return write(t, filepath.Join(root, "notes"), "")
		}, []string{"a file, want a folder"}},
		{"a path through a file", func(t *testing.T, root string) string {
			return filepath.Join(write(t, filepath.Join(root, "notes"), ""), "model")
		}, []string{"folder: "}},
		{"an empty folder", func(t *testing.T, root string) string { return root }, []string{"no config.json", "an empty folder", repository}},
		{"the folder above a snapshot", func(t *testing.T, root string) string {
			return filepath.Dir(filepath.Dir(hub(t, root)))
		}, []string{"no config.json", "the cache of a Hub repository", "snapshots"}},
		{"a shard that links nowhere", func(t *testing.T, root string) string {
			place(t, root)
			os.Remove(filepath.Join(root, second))
			link(t, "../../blobs/gone", filepath.Join(root, second))
			return root
		}, []string{second, "a link to a file that is not there", "incomplete download"}},
		{"a generation_config.json that links nowhere", func(t *testing.T, root string) string {
			place(t, root)
			os.Remove(filepath.Join(root, "generation_config.json"))
			link(t, "gone", filepath.Join(root, "generation_config.json"))
			return root
		}, []string{"generation_config.json", "a link to a file that is not there"}},
		{"a folder named config.json", func(t *testing.T, root string) string {
			mkdir(t, filepath.Join(root, "config.json"))
			return root
		}, []string{"config.json: a folder, want a file"}},
		{"a link to itself", func(t *testing.T, root string) string {
			link(t, "config.json", filepath.Join(root, "config.json"))
			return root
		}, []string{"config.json"}},
		{"an empty shard", func(t *testing.T, root string) string {
			place(t, root)
			write(t, filepath.Join(root, second), "")
			return root
		}, []string{second, "0 bytes", "incomplete download"}},
		{"no permission for a shard", func(t *testing.T, root string) string {
			place(t, root)
			lock(t, filepath.Join(root, first))
			return root
		}, []string{first, "permission denied"}},
		{"no permission for the folder", func(t *testing.T, root string) string {
			place(t, filepath.Join(root, "m"))
			lock(t, filepath.Join(root, "m"))
			return filepath.Join(root, "m")
		}, []string{"permission denied"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := tt.path(t, t.TempDir())
			_, err := checkpoint.Open(checkpoint.Dir(path), anySize)
			if err == nil {
				t.Fatal("opened, want a refusal")
			}
			for _, w := range append(tt.words, "checkpoint: "+path+": ") {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("error %q, want the words %q", err, w)
				}
			}
		})
	}
}

// lock takes all permissions away until the test ends.
func lock(t *testing.T, path string) {
	t.Helper()
	if os.Geteuid() == 0 {
		t.Skip("root may read everything")
	}
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Chmod(path, 0o777) })
}

// TestDirOpen keeps names inside the folder.
func TestDirOpen(t *testing.T) {
	dir := t.TempDir()
	place(t, dir)
	for _, name := range []string{"", ".", "..", "../x", "/etc/passwd", "a/b", filepath.Join(dir, first)} {
		if f, err := checkpoint.Dir(dir).Open(name); err == nil {
			f.Close()
			t.Errorf("opened %q, want a refusal", name)
		}
	}
	if _, err := checkpoint.Dir(dir).Open("tokenizer.json"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v, want fs.ErrNotExist", err)
	}
	empty := filepath.Join(dir, "empty")
	if err := os.WriteFile(empty, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := checkpoint.Dir(dir).Open("empty")
	if err != nil {
		t.Fatal(err)
	}
	if f.Size() != 0 || len(f.Bytes()) != 0 {
		t.Errorf("an empty file of %d bytes, %d mapped", f.Size(), len(f.Bytes()))
	}
	if err := f.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}
