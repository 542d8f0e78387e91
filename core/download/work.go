package download

import (
	"path/filepath"
	"sync"
	"time"
)

// work is a pull or a verification while it runs, with its folder locked.
type work struct {
	Options
	folder string // canonical
	meter  *meter
	held   bool // by the mark of Store.Pause; of the meter's goroutine

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
	stop := w.meter.run(w.obeyMark)
	return w, func() {
		stop()
		w.hold(false) // the throttle may serve again
		release()
	}, nil
}

func (w *work) final(f File) string { return filepath.Join(w.folder, f.Name) }

func (w *work) cut(f File) pieces { return pieces{f.Size, w.piece} }

// prove adds proofs to the receipt and keeps it.
func (w *work) prove(proofs ...Proof) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range proofs {
		if !p.Damaged {
			p.Verified = w.now().UTC().Truncate(time.Second)
		}
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
