package download

import (
	"context"
	"fmt"
	"net/http"

	"golang.org/x/sync/errgroup"
)

// probe asks the server for the first byte of every file, so that a missing or
// different one, or a page to log in, is known before any file is fetched. A
// request for one byte, unlike one for the head alone, is answered by addresses
// that are signed for getting.
func (t *transfer) probe(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(t.plan.workers)
	for i, x := range t.targets {
		if t.plan.files[i].complete() {
			continue
		}
		g.Go(func() error { return t.probeFile(ctx, i, x) })
	}
	return g.Wait()
}

func (t *transfer) probeFile(ctx context.Context, i int, x *target) error {
	for failed := 1; ; failed++ {
		if err := t.throttle.pass(ctx, 0); err != nil {
			return err
		}
		whole, err := t.firstByte(ctx, x.file)
		switch {
		case err == nil:
			t.plan.files[i].whole = whole
			return nil
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case permanent(err):
			return fmt.Errorf("%s: %w", x.file.Name, err)
		}
		if err := t.wait(ctx, x.file.Name, failed, err); err != nil {
			return err
		}
	}
}

// firstByte asks for the first byte of f. The answer is the whole file, and goes
// unread, where the server sends no parts of it.
func (t *transfer) firstByte(ctx context.Context, f File) (whole bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r, _, err := t.ask(ctx, f, 0, 1)
	if err != nil {
		return false, err
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusPartialContent {
		return true, nil
	}
	body := newSteady(ctx, stop, r.Body, t.patience, t.throttle, t.meter.add)
	return false, body.skip(1) // the connection can serve again
}
