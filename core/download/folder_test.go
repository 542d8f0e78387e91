package download

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"calla/core/download/hubtest"
)

// TestFolders pulls to all kinds of places.
func TestFolders(t *testing.T) {
	for _, tt := range []struct {
		name string
		path func(s *site, root string) string
	}{
		{"several folders that are not there", func(s *site, root string) string { return filepath.Join(root, "a", "b", "c") }},
		{"blanks, other scripts and signs", func(s *site, root string) string {
			return filepath.Join(root, "Модель ⌘", "é e\u0301 #1? 100%", "モデル")
		}},
		{"a slash at the end", func(s *site, root string) string { return filepath.Join(root, "model") + "/" }},
		{"through a link", func(s *site, root string) string {
			s.must(os.Mkdir(filepath.Join(root, "real"), 0o777))
			if err := os.Symlink("real", filepath.Join(root, "link")); err != nil {
				s.t.Skipf("no links here: %v", err)
			}
			return filepath.Join(root, "link")
		}},
		{"where nobody said", func(s *site, root string) string { return "" }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.Folder = tt.path(s, t.TempDir())
			r, err := Pull(context.Background(), s.Options)
			if err != nil {
				t.Fatal(err)
			}
			if s.Folder == "" {
				s.Folder = s.Store.Folder(s.Manifest)
			}
			s.complete()
			if bad := s.verify(); len(bad) > 0 {
				t.Errorf("Verify finds %v", bad)
			}
			if got, err := s.Store.Locate(s.Manifest); err != nil || got != r.Folder {
				t.Errorf("Locate = %q, %v, want %q", got, err, r.Folder)
			}
		})
	}
}

// TestFileNames pulls files whose names need care in addresses.
func TestFileNames(t *testing.T) {
	s := newSite(t,
		hubtest.File{Name: "Модель é 1.json", Content: []byte("x")},
		hubtest.File{Name: "100%25 a+b&c=d;e@f,g.json", Content: []byte("y")},
		hubtest.File{Name: "model#1.safetensors", Content: hubtest.Random(1, 3*testPiece)},
	)
	s.pull()
}

// TestConflicts pulls to a folder where something of somebody else has a name
// that is needed. It stays as it is.
func TestConflicts(t *testing.T) {
	for _, tt := range []struct {
		name string
		path string // what is there
		put  func(s *site, path string)
		want string // part of the error
	}{
		{"another model's file", "config.json", func(s *site, path string) { s.must(os.WriteFile(path, []byte(`{"model_type": "other one"}`), 0o666)) }, "is another file"},
		{"a folder", shard1, func(s *site, path string) { s.must(os.MkdirAll(path, 0o777)) }, "not a file"},
		{"another program's part", shard1 + partSuffix, func(s *site, path string) { s.must(os.WriteFile(path, []byte("x"), 0o666)) }, "not ours"},
		{"a link in the part's place", shard1 + partSuffix, func(s *site, path string) { s.must(os.Symlink("elsewhere", path)) }, "not ours"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.must(os.MkdirAll(s.Folder, 0o777))
			tt.put(s, s.path(tt.path))
			before := tree(t, s.path(tt.path))
			_, err := Pull(context.Background(), s.Options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
			if after := tree(t, s.path(tt.path)); !slices.Equal(before, after) {
				t.Errorf("%s changed from %v to %v", tt.path, before, after)
			}
			if got := s.hub.Requests(); len(got) > 0 {
				t.Errorf("%d requests before the refusal", len(got))
			}
			s.must(os.RemoveAll(s.path(tt.path)))
			s.pull()
		})
	}
}

// TestOwnFolder: in a folder of the store nobody else keeps files, so that a
// file which a copy of the folder left short is simply fetched.
func TestOwnFolder(t *testing.T) {
	s := newSite(t)
	s.Folder = s.Store.Folder(s.Manifest)
	s.must(os.MkdirAll(s.Folder, 0o777))
	s.must(os.WriteFile(s.path(shard1), []byte("cut short"), 0o666))
	s.pull()
}

// TestStaleParts pulls over what pulls of other files, or older ones, left.
func TestStaleParts(t *testing.T) {
	for _, tt := range []struct {
		name string
		put  func(s *site)
	}{
		{"a part of another file", func(s *site) {
			other := File{Name: shard1, Size: 7, SHA256: strings.Repeat("1", 64)}
			p, err := openPart(s.path(shard1), other, pieces{7, testPiece})
			s.must(err)
			s.must(p.write(0, []byte("1234567")))
			s.must(p.close())
		}},
		{"a journal without its part", func(s *site) {
			f, _ := s.Manifest.File(shard1)
			s.must(writeJournal(s.path(shard1), f, s.cut(f), []prefix{{testPiece, 1}}))
		}},
		{"a part that is longer", func(s *site) {
			f, _ := s.Manifest.File(shard1)
			s.must(writeJournal(s.path(shard1), f, s.cut(f), nil))
			s.must(os.WriteFile(s.path(shard1)+partSuffix, make([]byte, f.Size+1000), 0o666))
		}},
		{"a journal that lies", func(s *site) {
			f, _ := s.Manifest.File(shard1)
			got := make([]prefix, s.cut(f).count())
			for i := range got {
				got[i] = prefix{s.cut(f).length(i), 12345}
			}
			s.must(writeJournal(s.path(shard1), f, s.cut(f), got))
			s.must(os.WriteFile(s.path(shard1)+partSuffix, make([]byte, f.Size), 0o666))
		}},
		{"a part next to a complete file", func(s *site) {
			s.pull()
			f, _ := s.Manifest.File(shard1)
			s.must(writeJournal(s.path(shard1), f, s.cut(f), nil))
			s.must(os.WriteFile(s.path(shard1)+partSuffix, make([]byte, 10), 0o666))
		}},
		{"an unfinished link", func(s *site) {
			s.must(os.Symlink("nowhere", s.path(shard1)+partSuffix+".link"))
			s.Places = []string{s.copyTo(s.t.TempDir(), shard1)}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.must(os.MkdirAll(s.Folder, 0o777))
			tt.put(s)
			s.pull()
		})
	}
}

func (s *site) cut(f File) pieces { return pieces{f.Size, s.piece} }

func TestRemove(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(s *site)
		left   []string // names; nil: the folder is gone
		kept   int      // files that were proved and stay
	}{
		{"all that was fetched", func(s *site) {}, nil, 0},
		{"a file of somebody else beside", func(s *site) { s.must(os.WriteFile(s.path("notes.txt"), nil, 0o666)) }, []string{"notes.txt"}, 0},
		{"a damaged file", func(s *site) { s.damage(shard1, 7); s.verify() }, nil, 0},
		{"a file that was written to", func(s *site) { s.touch(shard1) }, nil, 0},
		{"another file in its place", func(s *site) { s.rewrite(shard1, []byte("mine")) }, []string{shard1}, 1},
		{"a link in its place", func(s *site) { s.remove(shard1); s.symlink("config.json", shard1) }, []string{shard1}, 1},
		{"a file that is gone", func(s *site) { s.remove(shard1) }, nil, 0},
		{"an unfinished one", func(s *site) {
			s.damage(shard1, 7)
			s.verify()
			s.hub.Misbehave(func(r *hubtest.Reply) { r.Error(404) })
			if _, err := Pull(context.Background(), s.Options); err == nil {
				s.t.Error("Pull of what is not there: no error")
			}
		}, nil, 0},
		{"another program's part", func(s *site) { s.must(os.WriteFile(s.path("film.part"), nil, 0o666)) }, []string{"film.part"}, 0},
		{"the folder that is gone", func(s *site) { s.must(os.RemoveAll(s.Folder)) }, nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.pull()
			tt.change(s)
			out, err := s.Store.Remove(s.Folder)
			if err != nil || len(out.Kept) != tt.kept {
				t.Errorf("Remove = %+v, %v, want %d kept", out, err, tt.kept)
			}
			_, err = os.Stat(s.Folder)
			if tt.left == nil {
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("the folder is left with %v", s.list())
				}
			} else if got := s.list(); !slices.Equal(got, tt.left) {
				t.Errorf("left %v, want %v", got, tt.left)
			}
			if _, err := s.Store.Receipt(s.Folder); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the receipt is left: %v", err)
			}
		})
	}
}

func TestRemoveCounts(t *testing.T) {
	s := newSite(t)
	s.Places = []string{s.copyTo(t.TempDir(), shard1)}
	s.pull()
	out, err := s.Store.Remove(s.Folder)
	f, _ := s.Manifest.File(shard1)
	if want := s.Manifest.Bytes() - f.Size; err != nil || out.Freed != want {
		t.Errorf("Remove = %+v, %v, want %d bytes freed: those of the link are not", out, err, want)
	}
	if _, err := s.Store.Remove(s.Folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a second Remove: %v, want that there is nothing", err)
	}
}

// TestRemoveFound never touches what was there before.
func TestRemoveFound(t *testing.T) {
	s := newSite(t)
	s.copyTo(s.Folder, shard1)
	s.pull()
	out, err := s.Store.Remove(s.Folder)
	if err != nil || len(out.Kept) != 1 || !s.right(shard1) || len(s.list()) != 1 {
		t.Errorf("Remove = %+v, %v and left %v, want %s kept", out, err, s.list(), shard1)
	}
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(s *site)
		want   string // part of the error, or empty
	}{
		{"nothing changed", func(s *site) {}, ""},
		{"shorter", func(s *site) { s.truncate(shard1, 5) }, "5 bytes, want 200141"},
		{"written to", func(s *site) { s.touch(shard1) }, "written 2"},
		{"replaced by a copy of the same time", func(s *site) {
			info, err := os.Stat(s.path(shard1))
			s.must(err)
			s.rewrite(shard1, s.content(shard1))
			s.must(os.Chtimes(s.path(shard1), info.ModTime(), info.ModTime()))
		}, "another file of the same size and time"},
		{"gone", func(s *site) { s.remove(shard1) }, "does not exist"},
		{"a link that leads nowhere", func(s *site) { s.remove(shard1); s.symlink("nowhere", shard1) }, "a link to nowhere"},
		{"a folder in its place", func(s *site) { s.remove(shard1); s.must(os.Mkdir(s.path(shard1), 0o777)) }, "not a file"},
		{"the folder is gone", func(s *site) { s.must(os.RemoveAll(s.Folder)) }, "does not exist"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newSite(t)
			s.pull()
			tt.change(s)
			err := s.Store.Check(s.Folder)
			if tt.want == "" && err != nil || tt.want != "" && (!errors.Is(err, ErrChanged) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("Check: %v, want an ErrChanged with %q", err, tt.want)
			}
			if _, err := s.Store.Locate(s.Manifest); (err == nil) != (tt.want == "") {
				t.Errorf("Locate: %v", err)
			}
		})
	}
}

func TestCheckWithoutReceipt(t *testing.T) {
	s := newSite(t)
	if err := s.Store.Check(t.TempDir()); err != nil {
		t.Errorf("Check of a folder that nobody proved: %v", err)
	}
	if _, err := s.Store.Locate(s.Manifest); !errors.Is(err, ErrNotFound) {
		t.Errorf("Locate with nothing there: %v, want ErrNotFound", err)
	}
}

// TestStatus follows a folder from nothing to complete.
func TestStatus(t *testing.T) {
	s := newSite(t)
	s.hub.Misbehave(faulty(func(n int, r *hubtest.Reply) {
		if r.Cut = 12_000; n > 1 {
			r.Error(404)
		}
	}))
	s.Connections = 1
	if _, err := Pull(context.Background(), s.Options); err == nil {
		t.Fatal("Pull of what is not there: no error")
	}
	r, err := s.Store.Receipt(s.Folder)
	s.must(err)
	small := int64(len(s.content("config.json")) + 202 + 3*testPiece)
	if got, want := r.Status(), (Status{Done: small + 12_000, Total: s.Manifest.Bytes()}); got != want {
		t.Errorf("status %+v, want %+v", got, want)
	}
	s.hub.Misbehave(nil)
	if got := s.pull().Status(); !got.Complete() {
		t.Errorf("status %+v of a complete folder", got)
	}
	s.truncate(shard1, 1)
	if got := s.receipt().Status(); got.Complete() || !errors.Is(got.Changed, ErrChanged) {
		t.Errorf("status %+v of a changed folder", got)
	}
}

func (s *site) receipt() *Receipt {
	r, err := s.Store.Receipt(s.Folder)
	s.must(err)
	return r
}
