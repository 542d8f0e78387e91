package download

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"
)

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
