package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"calla/app/menu"
	"calla/core/download"
)

// files runs one job at a time on the model's files.
type files struct {
	mu   sync.Mutex
	dir  string             // where they are, or are to be
	stop context.CancelFunc // of the job that runs, else nil
}

func (f *files) busy() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.stop != nil
}

func (f *files) folder() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.dir
}

func (f *files) halt() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stop != nil {
		f.stop()
	}
}

// start runs a job, and then looks how the files are.
func (f *files) start(a *app, job func(context.Context) error) {
	ctx, stop := context.WithCancel(context.Background())
	f.mu.Lock()
	f.stop = stop
	f.mu.Unlock()
	go func() {
		defer stop()
		err := job(ctx)
		found := a.look()
		if err != nil && ctx.Err() == nil {
			a.log.Error("model", "error", err)
			found.Reason = plain(err)
			if found.Files == menu.Whole {
				a.send(menu.Trouble{Text: found.Reason})
			}
		}
		var wrong damage
		if errors.As(err, &wrong) {
			found.Files = menu.Damaged
		}
		f.mu.Lock()
		f.stop = nil
		f.mu.Unlock()
		a.tell(found)
	}()
}

// tell says how the files are. What the model can do may be known only now, and
// is said before, since an engine may be started on the word.
func (a *app) tell(found menu.FilesFound) {
	a.sendLate(a.readPreferences)
	a.send(found)
}

func (a *app) tellFiles() { a.tell(a.look()) }

// plain is an error of the download's for people.
func plain(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "download: "), "verify: ")
}

// look says how the files are, by what was kept of earlier looks at them.
func (a *app) look() menu.FilesFound {
	dir := a.prefs.get().Get("dir")
	found := menu.FilesFound{Files: menu.Absent}
	at, err := a.locate(dir)
	switch {
	case err == nil:
		dir, found.Files = at, menu.Whole
	case errors.Is(err, download.ErrChanged):
		found.Files, found.Reason = menu.Damaged, plain(err)
	}
	if dir == "" {
		dir = a.store.Folder(a.manifest)
	}
	a.files.mu.Lock()
	a.files.dir = dir
	a.files.mu.Unlock()
	r, err := a.store.Receipt(dir)
	if err != nil {
		return found
	}
	for _, p := range r.Files {
		found.Removable = found.Removable || p.Origin == download.Fetched || p.Origin == download.Linked
	}
	if s := r.Status(); found.Files == menu.Absent && s.Done > 0 {
		found.Files, found.Removable = menu.Partial, true
		found.Reason = fmt.Sprintf("%.1f GB of %.1f GB have arrived", float64(s.Done)/1e9, float64(s.Total)/1e9)
	}
	return found
}

// locate returns the folder of the whole model: that of the preferences, or
// any.
func (a *app) locate(dir string) (string, error) {
	if dir == "" {
		return a.store.Locate(a.manifest)
	}
	r, err := a.store.Receipt(dir)
	if err != nil {
		return "", download.ErrNotFound
	}
	if err := r.Check(); err != nil {
		return "", err
	}
	if !r.Complete(a.manifest) {
		return "", download.ErrNotFound
	}
	return dir, nil
}

func (a *app) options() download.Options {
	var last menu.Progress
	return download.Options{
		Manifest: a.manifest, Store: a.store, Folder: a.files.folder(), UserAgent: "calla/" + version,
		Progress: func(e download.Event) {
			p := menu.Progress{Done: e.Done, Total: e.Total, Rate: e.Rate, Left: e.Left, Note: e.Note}
			if e.Stage == download.StageAsk {
				p.Total, p.Note = a.manifest.Bytes(), orElse(e.Note, "asking the server")
			}
			if p.Note == "" && p.Done == last.Done {
				p.Note = last.Note // of a wait that goes on
			}
			if p != last {
				last = p
				a.send(menu.JobProgress{Progress: p})
			}
		},
	}
}

func orElse(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (a *app) pull(ctx context.Context) error {
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	o := a.options()
	o.Places = download.Places(os.Getenv, home)
	o.Proxy = download.SystemProxy()
	o.Token = os.Getenv("HF_TOKEN")
	if o.Endpoint = a.prefs.get().Get("endpoint"); o.Endpoint == "" {
		o.Endpoint = os.Getenv("HF_ENDPOINT")
	}
	_, err = download.Pull(ctx, o)
	return err
}

// damage is a file that verification found wrong.
type damage struct{ download.Report }

func (d damage) Error() string {
	switch n := len(d.Damaged); {
	case d.State == download.Missing:
		return d.Name + " is missing"
	case n == 1:
		return d.Name + " is wrong in one place"
	case n > 1:
		return fmt.Sprintf("%s is wrong in %d places", d.Name, n)
	}
	return d.Name + ": " + d.Reason
}

func (a *app) verify(ctx context.Context) error {
	reports, err := download.Verify(ctx, a.options())
	for _, r := range reports {
		if r.State != download.Right {
			return damage{r}
		}
	}
	return err
}

func (a *app) remove(context.Context) error {
	_, err := a.store.Remove(a.files.folder())
	return err
}
