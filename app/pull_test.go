package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"calla/core/checkpoint/checkpointtest"
	"calla/core/download"
	"calla/core/download/hubtest"
)

// person is somebody with a home of their own, who types commands.
type person struct {
	t    *testing.T
	home string
	hub  *hubtest.Hub
}

// newPerson returns a person to whom the hub is Hugging Face.
func newPerson(t *testing.T, files ...hubtest.File) *person {
	t.Helper()
	p := &person{t: t, home: t.TempDir(), hub: hubtest.New(t, files...)}
	for _, e := range os.Environ() {
		if name, _, _ := strings.Cut(e, "="); strings.HasPrefix(name, "XDG_") || strings.HasPrefix(name, "HF_") || strings.HasPrefix(name, "CALLA_") || strings.Contains(strings.ToLower(name), "_proxy") {
			t.Setenv(name, "")
			os.Unsetenv(name)
		}
	}
	t.Setenv("HOME", p.home)
	t.Setenv("HF_ENDPOINT", p.hub.URL)
	if err := os.WriteFile(p.manifest(), p.hub.Manifest(), 0o666); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *person) manifest() string { return filepath.Join(p.home, "manifest.json") }

// types runs a command as it is typed, in this process.
func (p *person) types(args ...string) (out, errs string, err error) {
	p.t.Helper()
	root := newRoot()
	var o, e bytes.Buffer
	root.SetOut(&o)
	root.SetErr(&e)
	root.SetArgs(args)
	err = root.ExecuteContext(context.Background())
	return o.String(), e.String(), err
}

// does runs a command that must succeed, and returns its output.
func (p *person) does(args ...string) string {
	p.t.Helper()
	out, errs, err := p.types(args...)
	if err != nil {
		p.t.Fatalf("calla %s: %v\n%s%s", strings.Join(args, " "), err, out, errs)
	}
	return out
}

// twin are the demo model's files, as a repository.
func twin(t *testing.T) []hubtest.File {
	t.Helper()
	var files []hubtest.File
	for _, name := range []string{"config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "model.safetensors"} {
		b, err := os.ReadFile(filepath.Join("..", "bundle", "demo", name))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, hubtest.File{Name: name, Content: b, ByGit: name == "generation_config.json"})
	}
	return files
}

func TestPullVerifyRemove(t *testing.T) {
	p := newPerson(t, twin(t)...)
	dir := filepath.Join(p.home, "Модель ⌘")
	out := p.does("pull", "--manifest", p.manifest(), "--dir", dir)
	if !strings.Contains(out, "verified: "+dir) {
		t.Errorf("pull prints %q, want the folder", out)
	}
	p.loads(dir)
	// Who names no folder means the one that was pulled to.
	if out := p.does("verify", "--manifest", p.manifest()); strings.Count(out, "right") != 6 || !strings.Contains(out, dir) {
		t.Errorf("verify prints %q, want six right files in %s", out, dir)
	}
	if out := p.does("model", "ls"); !strings.Contains(out, "calla-tests/twin") || !strings.Contains(out, "complete") || !strings.Contains(out, dir) {
		t.Errorf("model ls prints %q", out)
	}
	if out := p.does("model", "rm", "--manifest", p.manifest()); !strings.Contains(out, "freed 9 MiB") {
		t.Errorf("model rm prints %q, want the bytes freed", out)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is left: %v", err)
	}
	if _, _, err := p.types("model", "rm", "--manifest", p.manifest()); err == nil || !strings.Contains(err.Error(), "nothing was pulled") {
		t.Errorf("a second model rm: %v, want that nothing is there", err)
	}
	if out := p.does("model", "ls"); !strings.Contains(out, "no models") {
		t.Errorf("model ls prints %q, want none", out)
	}
}

// loads runs the twin in a folder, and wants the demo model's tokens.
func (p *person) loads(dir string) {
	p.t.Helper()
	s := demoSettings()
	s.model, s.anySize = dir, true
	c := expectations(p.t)[0]
	cmd := newEval()
	cmd.SetContext(context.Background())
	e, err := evaluate(cmd, &s, c.PromptIDs, 3)
	if err != nil {
		p.t.Fatal(err)
	}
	if !slices.Equal(e.Tokens, c.OutputIDs[:3]) {
		p.t.Errorf("the model in %s gives %v, want %v", dir, e.Tokens, c.OutputIDs[:3])
	}
}

// TestTwinFromLayouts pulls where other programs have the files, and runs what
// came of it.
func TestTwinFromLayouts(t *testing.T) {
	put := func(t *testing.T, path string, content []byte) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, content, 0o666)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name   string
		layout func(t *testing.T, p *person, f hubtest.File, pinned download.File)
		args   []string
	}{
		{"the Hub's cache", func(t *testing.T, p *person, f hubtest.File, pinned download.File) {
			repository := filepath.Join(p.home, ".cache", "huggingface", "hub", "models--calla-tests--twin")
			blob := pinned.SHA256 + pinned.GitSHA1
			put(t, filepath.Join(repository, "blobs", blob), f.Content)
			snapshot := filepath.Join(repository, "snapshots", hubtest.Revision)
			if err := errors.Join(os.MkdirAll(snapshot, 0o777), os.Symlink(filepath.Join("..", "..", "blobs", blob), filepath.Join(snapshot, f.Name))); err != nil {
				t.Fatal(err)
			}
		}, nil},
		{"LM Studio's folder", func(t *testing.T, p *person, f hubtest.File, _ download.File) {
			put(t, filepath.Join(p.home, ".lmstudio", "models", "calla-tests", "twin", f.Name), f.Content)
		}, nil},
		{"a folder with blanks and other scripts", func(t *testing.T, p *person, f hubtest.File, _ download.File) {
			put(t, filepath.Join(p.home, "Мои модели", "é e\u0301", f.Name), f.Content)
		}, []string{"--from", "Мои модели/é e\u0301"}},
		{"links to links that leave the folder", func(t *testing.T, p *person, f hubtest.File, _ download.File) {
			put(t, filepath.Join(p.home, "a", f.Name), f.Content)
			for _, dir := range []string{"b", "c"} {
				if err := os.MkdirAll(filepath.Join(p.home, dir), 0o777); err != nil {
					t.Fatal(err)
				}
			}
			if err := errors.Join(os.Symlink(filepath.Join("..", "a", f.Name), filepath.Join(p.home, "b", f.Name)),
				os.Symlink(filepath.Join(p.home, "b", f.Name), filepath.Join(p.home, "c", f.Name))); err != nil {
				t.Fatal(err)
			}
		}, []string{"--from", "c"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPerson(t, twin(t)...)
			here, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(p.home)
			m, err := readManifest(p.manifest())
			if err != nil {
				t.Fatal(err)
			}
			for i, f := range p.hub.Files() {
				tt.layout(t, p, f, m.Files[i])
			}
			out := p.does(append([]string{"pull", "--manifest", p.manifest()}, tt.args...)...)
			if n := len(p.hub.Requests()); n > 0 || !strings.Contains(out, "6 of 6 files were found") {
				t.Errorf("%d requests for what is there; pull prints %q", n, out)
			}
			_, folder, _ := strings.Cut(strings.TrimSpace(out), "verified: ")
			t.Chdir(here) // where a relative --from leads nowhere
			p.does("verify", "--manifest", p.manifest())
			p.loads(folder)
		})
	}
}

// TestVerifyNamesTensors damages a tensor in the second piece of a shard, which
// is the only one to be named and fetched.
func TestVerifyNamesTensors(t *testing.T) {
	config := checkpointtest.Small
	config.Vocab = 300_000
	c := checkpointtest.New(config, 1)
	shard := c.Shards[0]
	var files []hubtest.File
	for name, content := range c.Contents() {
		files = append(files, hubtest.File{Name: name, Content: content})
	}
	p := newPerson(t, files...)
	dir := filepath.Join(p.home, "model")
	p.does("pull", "--manifest", p.manifest(), "--dir", dir)

	size := int64(len(shard.Encode()))
	if size <= download.PieceSize {
		t.Fatalf("the shard has %d bytes, want more than a piece", size)
	}
	flip(t, filepath.Join(dir, shard.Name), size-1)
	out, _, err := p.types("verify", "--manifest", p.manifest(), "--json")
	if err == nil {
		t.Fatal("verify of a damaged file: no error")
	}
	var v verified
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		t.Fatalf("verify --json prints %q: %v", out, err)
	}
	for _, f := range v.Files {
		if f.Name != shard.Name {
			continue
		}
		want := []download.Span{{Begin: download.PieceSize, End: size}}
		if !slices.Equal(f.Damaged, want) {
			t.Errorf("damaged %v, want %v", f.Damaged, want)
		}
		if want := behind(shard, download.PieceSize); !slices.Equal(slices.Sorted(slices.Values(f.Tensors)), want) {
			t.Errorf("tensors %v, want %v", f.Tensors, want)
		}
	}
	p.hub.Forget()
	p.does("pull", "--manifest", p.manifest())
	for _, r := range p.hub.Requests() {
		if r.Range != "bytes=0-0" && !strings.HasPrefix(r.Range, "bytes=16777216-") {
			t.Errorf("the repair asks for %s of %s", r.Range, r.Path)
		}
	}
	p.does("verify", "--manifest", p.manifest())
}

// behind returns the names of the tensors that reach beyond byte off of a shard.
func behind(s *checkpointtest.Shard, off int64) []string {
	var names []string
	end := int64(8 + len(s.Header()))
	for i, x := range s.Tensors {
		end += (&checkpointtest.Shard{Tensors: s.Tensors[i : i+1]}).DataSize()
		if end > off {
			names = append(names, x.Name)
		}
	}
	slices.Sort(names)
	return names
}

func flip(t *testing.T, path string, off int64) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	b[0] ^= 1
	if _, err2 := f.WriteAt(b[:], off); err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
}

// TestVerifyDamagedHeader: where the header itself is damaged, that is said.
func TestVerifyDamagedHeader(t *testing.T) {
	p := newPerson(t, twin(t)...)
	p.does("pull", "--manifest", p.manifest(), "--dir", filepath.Join(p.home, "model"))
	flip(t, filepath.Join(p.home, "model", "model.safetensors"), 3)
	out, _, err := p.types("verify", "--manifest", p.manifest())
	if err == nil || status(err) != status(modelError{}) || !strings.Contains(out, "wrong    model.safetensors: 1 of 1 pieces damaged") || !strings.Contains(out, "can't be named: checkpoint") {
		t.Errorf("verify ends with %v and prints %q", err, out)
	}
}

func TestPullJSON(t *testing.T) {
	p := newPerson(t, twin(t)...)
	p.hub.Misbehave(func(r *hubtest.Reply) {
		if r.Name == "config.json" && r.N == 1 && !r.Probe {
			r.Error(503)
		}
	})
	out := p.does("pull", "--manifest", p.manifest(), "--json", "--dir", filepath.Join(p.home, "model"))
	lines := strings.Split(strings.TrimSpace(out), "\n")
	noted := false
	for _, line := range lines {
		var e eventLine
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		noted = noted || strings.Contains(e.Note, "503")
	}
	var last pulledFolder
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Stage != download.StageDone || len(last.Files) != 6 || last.Files[0].Digest == "" {
		t.Errorf("the last line is %q, want what was pulled", lines[len(lines)-1])
	}
	if !noted {
		t.Errorf("no line tells of the 503:\n%s", out)
	}
	if out := p.does("model", "ls", "--json"); !strings.Contains(out, `"state":"complete"`) {
		t.Errorf("model ls --json prints %q", out)
	}
	if out := p.does("model", "rm", "--json", "--manifest", p.manifest()); !strings.Contains(out, `"freed":`) {
		t.Errorf("model rm --json prints %q", out)
	}
}

func TestPullFails(t *testing.T) {
	for _, tt := range []struct {
		name  string
		fault func(*hubtest.Reply)
		want  string
	}{
		{"a network that wants a log-in", func(r *hubtest.Reply) { r.Page() }, "log in to the network"},
		{"nothing there", func(r *hubtest.Reply) { r.Error(404) }, "404 Not Found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := newPerson(t, twin(t)...)
			p.hub.Misbehave(tt.fault)
			out, _, err := p.types("pull", "--json", "--manifest", p.manifest())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("pull: %v, want an error with %q", err, tt.want)
			}
			if !strings.Contains(out, `"stage":"failed"`) {
				t.Errorf("pull --json prints %q, want how it ended", out)
			}
		})
	}
}

func TestPullWrongUse(t *testing.T) {
	p := newPerson(t)
	for _, args := range [][]string{
		{"pull", "--limit", "fast"},
		{"pull", "--endpoint", "mirror"},
		{"pull", "--pause", "--resume"},
		{"pull", "--manifest", "nowhere.json"},
		{"pull", "--connections", "0.5"},
		{"verify", "now"},
	} {
		if _, _, err := p.types(args...); err == nil {
			t.Errorf("calla %v: no error", args)
		}
	}
	if _, _, err := p.types("pull", "--pause"); err == nil {
		t.Error("pull --pause with no pull: no error")
	}
	p.does("pull", "--resume")
}

func TestByteRate(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64 // -1: refused
	}{
		{"0", 0}, {"1", 1}, {"500k", 500_000}, {"20M", 20_000_000}, {"1.5m", 1_500_000}, {"1G", 1_000_000_000},
		{"", -1}, {"M", -1}, {"-1", -1}, {"20MB", -1}, {"20kk", -1}, {"NaN", -1}, {"Inf", -1}, {"1e9G", -1}, {"0.1", -1}, {"fast", -1},
	} {
		var r byteRate
		err := r.Set(tt.text)
		if got := int64(r); err == nil && got != tt.want || err != nil && tt.want >= 0 {
			t.Errorf("rate %q = %d, %v, want %d", tt.text, got, err, tt.want)
		}
	}
}

// TestCheckModel: a start notices what changed, and knows the model's folder.
func TestCheckModel(t *testing.T) {
	p := newPerson(t, twin(t)...)
	dir := filepath.Join(p.home, "model")
	p.does("pull", "--manifest", p.manifest(), "--dir", dir)
	if err := checkModel(dir); err != nil {
		t.Errorf("an unchanged folder: %v", err)
	}
	if err := checkModel(p.home); err != nil {
		t.Errorf("a folder that was never verified: %v", err)
	}
	flip(t, filepath.Join(dir, "config.json"), 0)
	if err := checkModel(dir); !errors.Is(err, download.ErrChanged) || !strings.Contains(err.Error(), "calla pull mends it") {
		t.Errorf("a changed folder: %v, want ErrChanged and what to do", err)
	}
	if err := (&settings{model: dir}).findModel(); !errors.Is(err, download.ErrChanged) {
		t.Errorf("serve from a changed folder: %v, want ErrChanged", err)
	}
	if s := (settings{model: "auto"}); s.findModel() != nil || s.model != "demo" {
		t.Errorf("without a downloaded model auto is %s, want demo", s.model)
	}
	if _, err := locateModel(); !errors.Is(err, download.ErrNotFound) || !strings.Contains(err.Error(), "calla pull downloads it") {
		t.Errorf("the published model: %v, want that it is not there, and what to do", err)
	}
}

func TestEventText(t *testing.T) {
	for _, tt := range []struct {
		event download.Event
		want  string
	}{
		{download.Event{Total: 10 << 30}, "0 % of 10.0 GiB"},
		{download.Event{Done: 3 << 30, Total: 10 << 30, Rate: 84.2e6, Left: 90 * time.Second}, "30 % of 10.0 GiB, 84.2 MB/s, 90 s left"},
		{download.Event{Done: 3 << 30, Total: 10 << 30, Rate: 1e6, Left: 2*time.Hour + 119*time.Second}, "30 % of 10.0 GiB, 1.0 MB/s, 2 h 1 min left"},
		{download.Event{Done: 1, Total: 2, Rate: 1e6, Left: time.Hour, Paused: true}, "50 % of 2 bytes, paused"},
		{download.Event{}, "0 % of 0 bytes"},
	} {
		if got := eventText(tt.event); got != tt.want {
			t.Errorf("eventText(%+v) = %q, want %q", tt.event, got, tt.want)
		}
	}
}

func TestLineShow(t *testing.T) {
	var b strings.Builder
	now := time.Unix(0, 0)
	s := &lineShow{out: &b, every: 5 * time.Second, now: func() time.Time { return now }}
	for _, e := range []download.Event{
		{Stage: download.StageCheck, Total: 100},
		{Stage: download.StageCheck, Done: 10, Total: 100},
		{Stage: download.StageAsk},
		{Stage: download.StageFetch, Done: 20, Total: 100},
		{Stage: download.StageFetch, Done: 30, Total: 100, Note: "x: 503; again in 2s"},
		{Stage: download.StageDone, Done: 100, Total: 100},
	} {
		s.event(e)
	}
	now = now.Add(6 * time.Second)
	s.event(download.Event{Stage: download.StageFetch, Done: 60, Total: 100})
	s.end()
	want := "checking: 0 % of 100 bytes\nfetching: 20 % of 100 bytes\nx: 503; again in 2s\nfetching: 60 % of 100 bytes\n"
	if b.String() != want {
		t.Errorf("lines\n%swant\n%s", b.String(), want)
	}
}
