package download

import (
	"bytes"
	"context"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"calla/core/download/hubtest"
)

// testPiece is short, so that small files have many pieces. It is no multiple of
// a digest's block, so that states have a rest in them.
const testPiece = 10_007

// quick is patience for tests.
var quick = patience{
	first: time.Millisecond, most: 5 * time.Millisecond, attempts: 6, enough: 1,
	stall: 300 * time.Millisecond, trickle: 1 << 10, answer: 5 * time.Second,
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childVariable); text != "" {
		child(text)
		return
	}
	log.SetOutput(io.Discard) // net/http's servers tell of connections that tests cut
	goleak.VerifyTestMain(m)
}

// twin is a small repository of the pinned one's shape: small files, pinned in
// both ways, and shards.
func twin() []hubtest.File {
	return []hubtest.File{
		{Name: "config.json", Content: []byte(`{"model_type": "twin"}`)},
		{Name: "generation_config.json", Content: hubtest.Random(1, 202), ByGit: true},
		{Name: "tokenizer.json", Content: hubtest.Random(2, 3*testPiece), ByGit: true},
		{Name: "model-00001-of-00002.safetensors", Content: hubtest.Random(3, 20*testPiece+1)},
		{Name: "model-00002-of-00002.safetensors", Content: hubtest.Random(4, 17*testPiece-1)},
	}
}

const shard1, shard2 = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"

// site is what a pull works with in a test: a server, a store and a folder.
type site struct {
	t   testing.TB
	hub *hubtest.Hub
	Options

	mu     sync.Mutex
	events []Event
}

func newSite(t testing.TB, files ...hubtest.File) *site {
	if len(files) == 0 {
		files = twin()
	}
	s := &site{t: t, hub: hubtest.New(t, files...)}
	root := t.TempDir()
	s.Options = Options{
		Manifest: manifestOf(t, s.hub), Store: NewStore(filepath.Join(root, "data")), Folder: filepath.Join(root, "model"),
		Endpoint: s.hub.URL, Connections: 3, patience: quick, piece: testPiece,
		Progress: func(e Event) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.events = append(s.events, e)
		},
	}
	return s
}

func manifestOf(t testing.TB, h *hubtest.Hub) Manifest {
	t.Helper()
	m, err := ParseManifest(bytes.NewReader(h.Manifest()))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// pull pulls, or fails the test.
func (s *site) pull() *Receipt {
	s.t.Helper()
	r, err := Pull(context.Background(), s.Options)
	if err != nil {
		s.t.Fatalf("Pull: %v", err)
	}
	s.complete()
	return r
}

// complete checks that all files are there as the server has them, and nothing
// else.
func (s *site) complete() {
	s.t.Helper()
	want := map[string][]byte{}
	for _, f := range s.contents() {
		want[f.Name] = f.Content
	}
	for name, content := range want {
		got, err := os.ReadFile(filepath.Join(s.Folder, name))
		if err != nil || !bytes.Equal(got, content) {
			s.t.Errorf("%s: %d bytes, error %v; want the server's %d", name, len(got), err, len(content))
		}
	}
	for _, name := range s.list() {
		if want[name] == nil {
			s.t.Errorf("%s is left in the folder", name)
		}
	}
	if r, err := s.Store.Receipt(s.Folder); err != nil || !r.Complete(s.Manifest) || r.Check() != nil {
		s.t.Errorf("the receipt is not of a complete folder: %v", err)
	}
}

// provedOnly checks that whatever has a final name is as the server has it.
func (s *site) provedOnly() {
	s.t.Helper()
	for _, f := range s.contents() {
		if _, err := os.Lstat(s.path(f.Name)); err == nil && !s.right(f.Name) {
			s.t.Errorf("%s has its final name and is wrong", f.Name)
		}
	}
}

// right says whether a file is there and as the server has it.
func (s *site) right(name string) bool {
	for _, f := range s.contents() {
		if f.Name == name {
			got, err := os.ReadFile(s.path(name))
			return err == nil && bytes.Equal(got, f.Content)
		}
	}
	return false
}

// verify verifies, and returns the reports of files that are not right.
func (s *site) verify() []Report {
	s.t.Helper()
	reports, err := Verify(context.Background(), s.Options)
	if err != nil {
		s.t.Fatalf("Verify: %v", err)
	}
	return slices.DeleteFunc(reports, func(r Report) bool { return r.State == Right })
}

// copyTo writes files of the server to a folder, and returns the folder.
func (s *site) copyTo(folder string, names ...string) string {
	s.t.Helper()
	if err := os.MkdirAll(folder, 0o777); err != nil {
		s.t.Fatal(err)
	}
	for _, f := range s.contents() {
		if slices.Contains(names, f.Name) {
			if err := os.WriteFile(filepath.Join(folder, f.Name), f.Content, 0o666); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	return folder
}

func (s *site) contents() []hubtest.File { return s.hub.Files() }

// list returns the names in the folder.
func (s *site) list() []string {
	s.t.Helper()
	entries, err := os.ReadDir(s.Folder)
	if err != nil {
		s.t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// asked returns the ranges of a file that the server was asked for since Forget,
// those of probes left out.
func (s *site) asked(name string) (ranges []string) {
	for _, r := range s.hub.Requests() {
		if strings.HasSuffix(r.Path, "/"+name) && r.Range != "bytes=0-0" {
			ranges = append(ranges, r.Range)
		}
	}
	return ranges
}

func (s *site) path(name string) string { return filepath.Join(s.Folder, name) }

func (s *site) stages() (stages []Stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.events {
		if len(stages) == 0 || stages[len(stages)-1] != e.Stage {
			stages = append(stages, e.Stage)
		}
	}
	return stages
}

func TestPull(t *testing.T) {
	s := newSite(t)
	r := s.pull()
	for _, p := range r.Files {
		if p.Origin != Fetched {
			t.Errorf("%s: origin %s, want %s", p.Name, p.Origin, Fetched)
		}
	}
	s.hub.Forget()
	s.pull()
	if got := s.hub.Requests(); len(got) > 0 {
		t.Errorf("a second pull made %d requests, want none: %v", len(got), got)
	}
	if !slices.Contains(s.stages(), StageFetch) || s.events[len(s.events)-1].Stage != StageDone {
		t.Errorf("stages %v, want fetching and at last done", s.stages())
	}
	if got, err := s.Store.Locate(s.Manifest); err != nil || got != r.Folder {
		t.Errorf("Locate = %q, %v, want %q", got, err, r.Folder)
	}
}

// origins checks that the receipt says that origin of all files, and Linked of
// those named.
func (s *site) origins(want Origin, linked ...string) {
	s.t.Helper()
	r, err := s.Store.Receipt(s.Folder)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, p := range r.Files {
		want := want
		if slices.Contains(linked, p.Name) {
			want = Linked
		}
		if p.Origin != want {
			s.t.Errorf("%s: origin %s, want %s", p.Name, p.Origin, want)
		}
	}
}

// linkedNames returns the names in the folder that are links.
func (s *site) linkedNames() (names []string) {
	for _, name := range s.list() {
		if _, err := os.Readlink(s.path(name)); err == nil {
			names = append(names, name)
		}
	}
	return names
}
