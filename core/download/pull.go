package download

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Options say what Pull and Verify work on, and how.
type Options struct {
	Manifest Manifest
	Store    Store
	Folder   string // where the files are to be; empty: Store.Folder
	// Progress is told how things are, several times a second and never from two
	// goroutines at once. It may be nil.
	Progress func(Event)

	// The rest is Pull's alone.

	Places      []string // folders in which copies may be; see Places
	Endpoint    string   // empty: DefaultEndpoint
	Token       string   // for the endpoint alone; may be empty
	UserAgent   string
	Connections int       // at once; 0: DefaultConnections
	Throttle    *Throttle // nil: none
	// Proxy chooses a request's proxy; nil: none. See SystemProxy.
	Proxy func(*http.Request) (*url.URL, error)

	patience patience
	piece    int64
	now      func() time.Time
}

// DefaultConnections is how many connections a pull has: two for each large
// file of the pinned manifest.
const DefaultConnections = 8

// complete fills in what was left open.
func (o *Options) complete() error {
	if o.Folder == "" {
		o.Folder = o.Store.Folder(o.Manifest)
	}
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	if o.Connections < 1 {
		return fmt.Errorf("%d connections, want at least 1", o.Connections)
	}
	if o.Throttle == nil {
		o.Throttle = NewThrottle(0)
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if o.patience == (patience{}) {
		o.patience = usual
	}
	if o.piece == 0 {
		o.piece = PieceSize
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o.Manifest.check()
}

// work is a pull or a verification while it runs, with its folder locked.
type work struct {
	Options
	folder string // canonical
	meter  *meter

	mu      sync.Mutex
	receipt *Receipt
}

// begin locks the folder, which exists, and reads its receipt. end gives back
// what it took.
func begin(o Options) (w *work, end func(), err error) {
	w = &work{Options: o}
	if w.folder, err = o.Store.known(o.Folder); err != nil {
		return nil, nil, err
	}
	release, err := lockFolder(w.folder)
	if err != nil {
		return nil, nil, err
	}
	if w.receipt, err = readReceipt(o.Store.path(w.folder, receiptSuffix)); err != nil {
		// One that can't be read proves nothing, as if there were none.
		w.receipt = &Receipt{Folder: w.folder}
	}
	w.receipt.Repository, w.receipt.Revision, w.receipt.Total = o.Manifest.Repository, o.Manifest.Revision, o.Manifest.Bytes()
	w.meter = &meter{now: o.now, paused: o.Throttle.Paused, tell: o.Progress}
	stop := w.meter.run(w.obeyPause())
	return w, func() { stop(); release() }, nil
}

func (w *work) final(f File) string { return filepath.Join(w.folder, f.Name) }

func (w *work) cut(f File) pieces { return pieces{f.Size, w.piece} }

// prove adds proofs to the receipt and keeps it.
func (w *work) prove(proofs ...Proof) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range proofs {
		w.receipt.put(p)
	}
	return w.Store.save(w.receipt)
}

// disprove takes a proof out of the receipt.
func (w *work) disprove(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.receipt.drop(name)
	return w.Store.save(w.receipt)
}

// Pull makes the folder have all files of the manifest, proved. What is there
// already is kept, what other programs have is linked to, and the rest is
// fetched. After an error or the end of ctx another Pull goes on where this one
// was.
func Pull(ctx context.Context, o Options) (*Receipt, error) {
	r, err := pull(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("download: %w", err)
	}
	return r, nil
}

func pull(ctx context.Context, o Options) (*Receipt, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	from, err := newOrigin(o.Endpoint, o.Manifest)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Folder, 0o777); err != nil {
		return nil, err
	}
	w, end, err := begin(o)
	if err != nil {
		return nil, err
	}
	defer end()
	if err := o.Store.Resume(w.folder); err != nil {
		return nil, err
	}
	if err := w.prove(); err != nil { // a receipt of nothing, by which the folder is known
		return nil, err
	}
	missing, err := w.survey(ctx)
	if err != nil {
		return nil, err
	}
	if missing, err = w.link(ctx, missing); err != nil {
		return nil, err
	}
	if err := w.fetch(ctx, from, missing); err != nil {
		return nil, err
	}
	w.meter.begin(StageDone, o.Manifest.Bytes(), o.Manifest.Bytes())
	return w.receipt, nil
}

// fetch brings the files that are missing.
func (w *work) fetch(ctx context.Context, from origin, missing []File) error {
	if len(missing) == 0 {
		return nil
	}
	if err := w.checkSpace(missing); err != nil {
		return err
	}
	t := &transfer{
		client: w.newClient(from),
		origin: from, throttle: w.Throttle, patience: w.patience, meter: w.meter, now: w.now,
		proved: w.keep, plan: plan{workers: w.Connections},
	}
	t.cond.L = &t.mu
	defer t.client.CloseIdleConnections()
	closeParts, err := w.openTargets(ctx, t, missing)
	defer closeParts()
	if err != nil {
		return err
	}
	w.meter.begin(StageAsk, 0, 0)
	if err := t.probe(ctx); err != nil {
		return err
	}
	have := w.Manifest.Bytes()
	for _, x := range t.targets {
		have -= x.file.Size - x.part.bytes()
	}
	w.meter.begin(StageFetch, have, w.Manifest.Bytes())
	return t.run(ctx)
}

// checkSpace compares what is to come with the free space of the disk.
func (w *work) checkSpace(missing []File) error {
	var need int64
	for _, f := range missing {
		got, _, err := readJournal(w.final(f), f, w.cut(f))
		if err != nil {
			return err
		}
		need += f.Size
		for _, p := range got {
			need -= p.n
		}
	}
	free, err := freeBytes(w.folder)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return err
	}
	if free < need {
		return fmt.Errorf("%w on the disk of %s: %d bytes are free, want %d", ErrNoSpace, w.folder, free, need)
	}
	return nil
}

// openTargets opens the unfinished files and reads again what is there of them,
// side by side.
func (w *work) openTargets(ctx context.Context, t *transfer, missing []File) (closeParts func(), err error) {
	w.meter.begin(StageCheck, 0, 0)
	t.targets = make([]*target, len(missing))
	t.plan.files = make([]*filePlan, len(missing))
	t.left = len(missing)
	g, ctx := errgroup.WithContext(ctx)
	for i, f := range missing {
		g.Go(func() error {
			x, err := w.openTarget(ctx, f)
			if err != nil {
				return localError{fmt.Errorf("%s: %w", f.Name, err)}
			}
			t.targets[i] = x
			t.plan.files[i] = newFilePlan(x.part.cut.count())
			for j := range t.plan.files[i].have {
				t.plan.files[i].have[j] = x.part.full(j)
			}
			return nil
		})
	}
	err = g.Wait()
	return func() {
		for _, x := range t.targets {
			if x != nil {
				x.part.close()
			}
		}
	}, err
}

func (w *work) openTarget(ctx context.Context, f File) (*target, error) {
	p, err := openPart(w.final(f), f, w.cut(f))
	if err != nil {
		return nil, err
	}
	w.meter.want(p.bytes())
	h, err := p.recheck(ctx, w.meter.add)
	if err != nil {
		p.close()
		return nil, err
	}
	x := &target{file: f, final: w.final(f), part: p, sequence: newSequence(p, h)}
	if p.bytes() > 0 {
		x.mixed = "Parts of it came earlier"
	}
	return x, nil
}

// keep gives a proved file its final name. Its receipt is written first: were we
// stopped in between, the next pull would know the part by it.
func (w *work) keep(x *target) error {
	if err := x.part.data.Sync(); err != nil {
		return err
	}
	// A time that every kind of disk can keep: some round to two seconds, but
	// only once the file is no longer in memory.
	when := w.now().Truncate(2 * time.Second)
	if err := os.Chtimes(x.final+partSuffix, when, when); err != nil {
		return err
	}
	info, err := x.part.data.Stat()
	if err != nil {
		return err
	}
	p := Proof{Name: x.file.Name, Digest: x.file.Digest(), stamp: stampOf(info), Piece: w.piece, States: x.sequence.states}
	p.Origin, p.Target = w.origin(p.Name, p.stamp, Fetched) // a repaired file stays whose it was
	if err := w.prove(p); err != nil {
		return err
	}
	step("receipt written")
	return promote(x.final)
}

// promote gives a proved part its final name.
func promote(final string) error {
	if err := moveFile(final+partSuffix, final); err != nil {
		return err
	}
	step("renamed")
	if err := os.Remove(final + journalSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	step("journal removed")
	return nil
}
