package download

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sync/errgroup"
)

// exam is a file on disk that is to be hashed, and what came out.
type exam struct {
	file File
	path string
	cut  pieces
	// known are the states of the digest from an earlier proof, or nil. With
	// them the pieces are hashed side by side, and damage is found to the piece;
	// without them the whole file is hashed in order.
	known chain

	data  *os.File
	stamp stamp

	mu     sync.Mutex
	digest string   // of the whole file, if it was hashed in order
	states chain    // between its pieces
	good   []prefix // of each piece: its length and checksum if it is right, by known
	err    error    // why nothing can be said of the file
}

// right says whether the file has the pinned digest.
func (e *exam) right() bool {
	if e.err != nil || e.stamp.Size != e.file.Size {
		return false
	}
	if e.known == nil {
		return e.digest == e.file.Digest()
	}
	return len(e.damaged()) == 0
}

// damaged returns the pieces that are not as the receipt knew them.
func (e *exam) damaged() []int {
	var out []int
	for i, p := range e.good {
		if p.n == 0 {
			out = append(out, i)
		}
	}
	return out
}

// examine hashes files side by side. An error of one file is kept with it; the
// error returned is of ctx. progress is told of bytes read, from any goroutine.
func examine(ctx context.Context, exams []*exam, progress func(int64)) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for _, e := range exams {
		if err := e.open(); err != nil {
			e.err = err
			continue
		}
		defer e.data.Close()
		e.start(ctx, g, progress)
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for _, e := range exams {
		e.finish()
	}
	return nil
}

func (e *exam) open() error {
	info, err := statFile(e.path)
	if err != nil {
		return err
	}
	if e.data, err = os.Open(e.path); err != nil {
		return err
	}
	e.stamp = stampOf(info)
	if e.known != nil && e.known.check(e.file, e.cut.count()) != nil {
		e.known = nil
	}
	return nil
}

// toRead returns how many bytes will be read of the file.
func (e *exam) toRead() int64 {
	info, err := statFile(e.path)
	if err != nil || e.known == nil && info.Size() != e.file.Size {
		return 0
	}
	return min(info.Size(), e.file.Size)
}

// start hands the work to g. A file of another size need not be hashed to know
// that it is wrong, unless its pieces can be told apart.
func (e *exam) start(ctx context.Context, g *errgroup.Group, progress func(int64)) {
	if e.known == nil {
		if e.stamp.Size == e.file.Size {
			g.Go(func() error { return e.whole(ctx, progress) })
		}
		return
	}
	e.good = make([]prefix, e.cut.count())
	for i := range e.good {
		g.Go(func() error { return e.piece(ctx, i, progress) })
	}
}

// whole hashes the file in order and keeps the states between its pieces.
func (e *exam) whole(ctx context.Context, progress func(int64)) error {
	d, states := newDigest(e.file), chain(nil)
	for i := range e.cut.count() {
		if _, err := readSpan(ctx, e.data, e.cut.span(i), d, progress); err != nil {
			return e.fail(ctx, err)
		}
		if i < e.cut.count()-1 {
			states = d.appendState(states)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.digest, e.states = d.text(), states
	return nil
}

// piece hashes one piece from the state before it.
func (e *exam) piece(ctx context.Context, i int, progress func(int64)) error {
	d, err := e.known.before(e.file, i)
	if err != nil {
		return nil // a broken chain: the piece counts as damaged
	}
	sum, err := readSpan(ctx, e.data, e.cut.span(i), d, progress)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil || !e.known.leadsTo(e.file, i, e.cut.count(), d):
		return nil // what can't be read is damaged
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.good[i] = prefix{e.cut.length(i), sum}
	return nil
}

func (e *exam) fail(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.err = err
	return nil
}

// finish looks whether the file was written to while it was read.
func (e *exam) finish() {
	if e.err != nil || e.data == nil {
		return
	}
	if info, err := statFile(e.path); err != nil {
		e.err = err
	} else if stampOf(info) != e.stamp {
		e.err = errors.New("changed while it was read")
	}
	if e.known != nil {
		e.states = e.known
	}
}

// verdict says what is wrong with a file, or nothing.
func (e *exam) verdict() error {
	switch {
	case errors.Is(e.err, fs.ErrNotExist):
		return fmt.Errorf("missing: %w", e.err)
	case e.err != nil:
		return e.err
	case e.right():
		return nil
	case e.stamp.Size != e.file.Size:
		return fmt.Errorf("%d bytes, want %d", e.stamp.Size, e.file.Size)
	case e.known == nil:
		return fmt.Errorf("digest %s, want %s", e.digest, e.file.Digest())
	}
	return fmt.Errorf("%d of %d pieces damaged", len(e.damaged()), e.cut.count())
}

// proof returns what a receipt keeps of a file that is right.
func (e *exam) proof(origin Origin, target string) Proof {
	return Proof{
		Name: e.file.Name, Digest: e.file.Digest(), stamp: e.stamp,
		Origin: origin, Target: target, Piece: e.cut.piece, States: e.states,
	}
}
