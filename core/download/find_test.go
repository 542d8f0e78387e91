package download

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"calla/core/download/hubtest"
)

func TestPlaces(t *testing.T) {
	const home = "/h"
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string // the Hub's cache
	}{
		{"nothing set", nil, "/h/.cache/huggingface/hub"},
		{"the cache of all programs", map[string]string{"XDG_CACHE_HOME": "/c"}, "/c/huggingface/hub"},
		{"the home of Hugging Face", map[string]string{"XDG_CACHE_HOME": "/c", "HF_HOME": "/hf"}, "/hf/hub"},
		{"its older name", map[string]string{"HF_HOME": "/hf", "HUGGINGFACE_HUB_CACHE": "/old"}, "/old"},
		{"the cache itself", map[string]string{"HF_HOME": "/hf", "HUGGINGFACE_HUB_CACHE": "/old", "HF_HUB_CACHE": "/hub"}, "/hub"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Places(func(k string) string { return tt.env[k] }, home)
			want := []string{tt.want, "/h/.lmstudio/models", "/h/.cache/lm-studio/models"}
			if !slices.Equal(got, want) {
				t.Errorf("Places = %q, want %q", got, want)
			}
		})
	}
}

// hubCache lays files out as the cache of the Hugging Face Hub does: blobs named
// by their digest, and a snapshot of links to them.
func (s *site) hubCache(root, revision string, names ...string) {
	s.t.Helper()
	repository := filepath.Join(root, "models--calla-tests--twin")
	snapshot := filepath.Join(repository, "snapshots", revision)
	blobs := filepath.Join(repository, "blobs")
	for _, dir := range []string{snapshot, blobs} {
		s.must(os.MkdirAll(dir, 0o777))
	}
	for _, name := range names {
		f, _ := s.Manifest.File(name)
		blob := f.SHA256 + f.GitSHA1
		s.must(os.WriteFile(filepath.Join(blobs, blob), s.content(name), 0o666))
		if err := os.Symlink(filepath.Join("..", "..", "blobs", blob), filepath.Join(snapshot, name)); err != nil {
			s.t.Skipf("no links here: %v", err)
		}
	}
}

// TestFound lays copies out as other programs do. They are used where they lie,
// and nothing there changes.
func TestFound(t *testing.T) {
	all := []string{"config.json", "generation_config.json", "tokenizer.json", shard1, shard2}
	for _, tt := range []struct {
		name   string
		layout func(s *site, root string) (place string)
		linked []string
	}{
		{"a folder with all files", func(s *site, root string) string { return s.copyAll(root) }, all},
		{"a folder with some", func(s *site, root string) string { return s.copyTo(root, shard2, "config.json") }, []string{"config.json", shard2}},
		{"an empty folder", func(s *site, root string) string { return root }, nil},
		{"no such folder", func(s *site, root string) string { return filepath.Join(root, "none") }, nil},
		{"the Hub's cache", func(s *site, root string) string {
			s.hubCache(root, hubtest.Revision, all...)
			return root
		}, all},
		{"a repository in the Hub's cache", func(s *site, root string) string {
			s.hubCache(root, hubtest.Revision, all...)
			return filepath.Join(root, "models--calla-tests--twin")
		}, all},
		{"a snapshot in the Hub's cache", func(s *site, root string) string {
			s.hubCache(root, hubtest.Revision, all...)
			return filepath.Join(root, "models--calla-tests--twin", "snapshots", hubtest.Revision)
		}, all},
		{"another revision with the same blobs", func(s *site, root string) string {
			s.hubCache(root, "feedface", shard1, "tokenizer.json")
			return root
		}, []string{"tokenizer.json", shard1}},
		{"a snapshot whose links dangle", func(s *site, root string) string {
			s.hubCache(root, hubtest.Revision, all...)
			s.must(os.RemoveAll(filepath.Join(root, "models--calla-tests--twin", "blobs")))
			return root
		}, nil},
		{"a link to a link that leaves the folder", func(s *site, root string) string {
			elsewhere := s.copyTo(s.t.TempDir(), shard1)
			s.must(os.Symlink(filepath.Join(elsewhere, shard1), filepath.Join(root, "one")))
			s.must(os.Symlink("one", filepath.Join(root, shard1)))
			return root
		}, []string{shard1}},
		{"a link in a circle", func(s *site, root string) string {
			s.must(os.Symlink(shard1, filepath.Join(root, shard1)))
			return root
		}, nil},
		{"LM Studio's folder", func(s *site, root string) string {
			s.copyAll(filepath.Join(root, "calla-tests", "twin"))
			return root
		}, all},
		{"LM Studio's folder of a mirror", func(s *site, root string) string {
			s.Manifest.Mirrors = []string{"mirror/twin-mlx"}
			s.copyTo(filepath.Join(root, "mirror", "twin-mlx"), shard1, shard2)
			s.must(os.WriteFile(filepath.Join(root, "mirror", "twin-mlx", "config.json"), []byte(`{"model_type": "other"}`), 0o666))
			return root
		}, []string{shard1, shard2}},
		{"a wrong file of the right size", func(s *site, root string) string {
			s.copyTo(root, shard1, shard2)
			s.must(os.WriteFile(filepath.Join(root, shard1), hubtest.Random(9, 20*testPiece+1), 0o666))
			return root
		}, []string{shard2}},
		{"a wrong file in one place and a right one in another", func(s *site, root string) string {
			s.copyTo(filepath.Join(root, "calla-tests", "twin"), shard1)
			s.must(os.WriteFile(filepath.Join(root, shard1), hubtest.Random(9, 20*testPiece+1), 0o666))
			return root
		}, []string{shard1}},
		{"a folder in the place of a file", func(s *site, root string) string {
			s.must(os.MkdirAll(filepath.Join(root, shard1), 0o777))
			return root
		}, nil},
		{"blanks and other scripts", func(s *site, root string) string {
			return s.copyAll(filepath.Join(root, "Модель ⌘", "é e\u0301 4bit"))
		}, all},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			root := t.TempDir()
			s.Places = []string{tt.layout(s, root)}
			before := tree(t, root)
			s.pull()
			linked := s.linkedNames()
			slices.Sort(linked)
			slices.Sort(tt.linked)
			if !slices.Equal(linked, tt.linked) {
				t.Errorf("links %v, want %v", linked, tt.linked)
			}
			for _, name := range linked {
				if got := s.asked(name); len(got) > 0 {
					t.Errorf("%s was found and is fetched: %v", name, got)
				}
			}
			if _, err := s.Store.Locate(s.Manifest); err != nil {
				t.Errorf("Locate: %v", err)
			}
			if bad := s.verify(); len(bad) > 0 {
				t.Errorf("Verify finds %v", bad)
			}
			removed, err := s.Store.Remove(s.Folder)
			if err != nil || len(removed.Kept) > 0 {
				t.Errorf("Remove = %+v, %v", removed, err)
			}
			if after := tree(t, root); !slices.Equal(after, before) {
				t.Errorf("the other program's folder changed from\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
		})
	}
}

// tree describes all that is below a folder: names, kinds, sizes, times, links.
func tree(t *testing.T, root string) (lines []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		to, _ := os.Readlink(path)
		content := ""
		if info.Mode().IsRegular() {
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			content = string(b)
		}
		f := File{Size: int64(len(content)), SHA256: "x"}
		digest := newDigest(f)
		digest.Write([]byte(content))
		lines = append(lines, strings.Join([]string{path, info.Mode().String(), info.ModTime().String(), to, digest.text()}, " "))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// TestLinkedAndGone: a copy that its owner removes is noticed, and fetched.
func TestLinkedAndGone(t *testing.T) {
	for _, tt := range []struct {
		name string
		gone func(s *site, path string)
	}{
		{"removed", func(s *site, path string) { s.must(os.Remove(path)) }},
		{"changed", func(s *site, path string) { s.must(os.WriteFile(path, hubtest.Random(9, 20*testPiece+1), 0o666)) }},
		{"damaged", func(s *site, path string) { s.damage(shard1, 3*testPiece) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			place := s.copyAll(t.TempDir())
			s.Places = []string{place}
			s.pull()
			tt.gone(s, filepath.Join(place, shard1))
			if bad := s.verify(); len(bad) != 1 {
				t.Errorf("Verify finds %v, want one file", bad)
			}
			if _, err := s.Store.Locate(s.Manifest); err == nil {
				t.Error("Locate finds the folder, though a copy is gone")
			}
			before := tree(t, place)
			s.hub.Forget()
			s.pull()
			if after := tree(t, place); !slices.Equal(before, after) {
				t.Errorf("the other folder changed from\n%s\nto\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
			}
			if got := s.asked(shard1); tt.name == "damaged" && len(got) != 1 {
				t.Errorf("asked for %v, want one piece, the others copied", got)
			}
			r, err := s.Store.Receipt(s.Folder)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Files {
				if want := map[bool]Origin{true: Fetched, false: Linked}[p.Name == shard1]; p.Origin != want {
					t.Errorf("%s: origin %s, want %s", p.Name, p.Origin, want)
				}
			}
		})
	}
}

// TestUnreadableCandidate: what can't be read is not used, and stops nothing.
func TestUnreadableCandidate(t *testing.T) {
	if os.Getuid() == 0 {
		t.Skip("root reads everything")
	}
	s := newSite(t)
	place := s.copyTo(t.TempDir(), shard1)
	s.must(os.Chmod(filepath.Join(place, shard1), 0))
	s.Places = []string{place}
	if _, err := Pull(context.Background(), s.Options); err != nil {
		t.Fatal(err)
	}
}
