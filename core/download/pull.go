package download

import (
	"context"
	"fmt"
	"os"
)

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
