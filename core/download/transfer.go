package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// target is a file that is being fetched. Its fields but part and sequence never
// change; those do when it has to begin again.
type target struct {
	file  File
	final string

	part     *part
	sequence *sequence

	tag   string // of the first reply
	mixed string // why the file may be put together from two, or empty
	again bool   // it has begun again
}

// transfer fetches files over several connections.
type transfer struct {
	client   *http.Client
	origin   origin
	throttle *Throttle
	patience patience
	meter    *meter
	now      func() time.Time
	proved   func(*target) error // called once for each file whose digest matched

	mu      sync.Mutex
	cond    sync.Cond // a piece may have become free, or nothing is left to do
	plan    plan
	targets []*target
	left    int // targets that are not proved
}

// run fetches and proves all targets. On error what has arrived stays where it
// is, for the next time.
func (t *transfer) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	stop := context.AfterFunc(ctx, t.stop)
	defer stop()
	for i := range t.targets {
		g.Go(func() error { return t.prove(ctx, i) })
	}
	for range t.plan.workers {
		g.Go(func() error { return t.work(ctx) })
	}
	return g.Wait()
}

// stop ends what waits for something else than the network.
func (t *transfer) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, x := range t.targets {
		x.sequence.close()
	}
	t.cond.Broadcast()
}

// prove hashes a target as it arrives, and decides about it.
func (t *transfer) prove(ctx context.Context, i int) error {
	x := t.targets[i]
	for {
		complete, err := x.sequence.run()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return localError{fmt.Errorf("%s: %w", x.file.Name, err)}
		case !complete:
			panic("download: hashing stopped by nobody")
		}
		got := x.sequence.digest.text()
		if got == x.file.Digest() {
			if err := t.proved(x); err != nil {
				return localError{fmt.Errorf("%s: %w", x.file.Name, err)}
			}
			t.done()
			return nil
		}
		if err := t.reject(i, got); err != nil {
			return err
		}
	}
}

func (t *transfer) done() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left--
	t.cond.Broadcast()
}

// reject throws a wrong file away. Where it may be put together from parts of two
// files it is fetched once more.
func (t *transfer) reject(i int, got string) error {
	x := t.targets[i]
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := x.part.discard(); err != nil {
		return localError{err}
	}
	step("wrong part discarded")
	why := fmt.Errorf("%s: digest %s, want %s; what came was thrown away", x.file.Name, got, x.file.Digest())
	if x.mixed == "" || x.again {
		return refusal{why}
	}
	t.meter.add(-x.file.Size)
	t.meter.report(fmt.Sprintf("%v. %s: fetching it again", why, x.mixed))
	p, err := openPart(x.final, x.file, x.part.cut)
	if err != nil {
		return localError{err}
	}
	x.part, x.sequence = p, newSequence(p, hashed{digest: newDigest(x.file)})
	x.tag, x.mixed, x.again = "", "", true
	t.plan.forget(i)
	t.cond.Broadcast()
	return nil
}

// work fetches one claim after another until nothing is left.
func (t *transfer) work(ctx context.Context) error {
	for {
		c := t.claim(ctx)
		if c == nil {
			return context.Cause(ctx)
		}
		if err := t.fetch(ctx, c); err != nil {
			return err
		}
	}
}

// claim waits for something to do. It returns nil when there is nothing left,
// or ctx ended.
func (t *transfer) claim(ctx context.Context) *claim {
	t.mu.Lock()
	defer t.mu.Unlock()
	for ctx.Err() == nil && t.left > 0 {
		if c := t.plan.claim(); c != nil {
			return c
		}
		t.cond.Wait()
	}
	return nil
}

// errElsewhere is the error of a claim that was released, because another
// connection brings the whole file.
var errElsewhere = errors.New("another connection brings the file")

// fetch gets the pieces of a claim, in as many attempts as it takes.
func (t *transfer) fetch(ctx context.Context, c *claim) error {
	x := t.targets[c.file]
	for failed := 0; ; {
		n, err := t.attempt(ctx, x, c)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil, errors.Is(err, errElsewhere):
			return nil
		case permanent(err):
			return fmt.Errorf("%s: %w", x.file.Name, err)
		}
		if failed++; n >= t.patience.enough {
			failed = 1
		}
		if err := t.wait(ctx, x.file.Name, failed, err); err != nil {
			return err
		}
	}
}

// wait waits before the next attempt, or gives up.
func (t *transfer) wait(ctx context.Context, name string, failed int, err error) error {
	if failed >= t.patience.attempts {
		return fmt.Errorf("%s: given up after %d attempts: %w", name, failed, err)
	}
	var after time.Duration
	if s, ok := errors.AsType[*statusError](err); ok {
		after = s.after
	}
	d := t.patience.wait(failed, after, chance)
	t.meter.report(fmt.Sprintf("%s: %v; again in %s", name, err, d.Round(100*time.Millisecond)))
	return sleep(ctx, d)
}

// attempt makes one request for what is left of a claim. It returns how many
// bytes came, and nil when the claim is complete.
func (t *transfer) attempt(ctx context.Context, x *target, c *claim) (int64, error) {
	off, end, more := t.rest(x, c)
	if !more {
		return 0, nil
	}
	if err := t.throttle.pass(ctx, 0); err != nil {
		return 0, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r, begin, err := t.ask(ctx, x.file, off, end)
	if err != nil {
		return 0, err
	}
	defer r.Body.Close()
	if !t.replied(x, c, r, off) {
		return 0, errElsewhere
	}
	body := newSteady(ctx, stop, r.Body, t.patience, t.throttle, t.meter.add)
	return t.receive(x, c, body, begin)
}

// ask requests the bytes of f from off to end. The body of the reply begins with
// byte begin.
func (t *transfer) ask(ctx context.Context, f File, off, end int64) (r *http.Response, begin int64, err error) {
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, t.origin.url(f), nil)
	if err != nil {
		return nil, 0, err
	}
	q.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", off, end-1))
	if r, err = t.client.Do(q); err != nil {
		return nil, 0, bare(err)
	}
	if begin, err = checkReply(r, f, off, t.now()); err != nil {
		r.Body.Close()
		return nil, 0, err
	}
	return r, begin, nil
}

// rest returns the bytes that a claim still lacks.
func (t *transfer) rest(x *target, c *claim) (off, end int64, more bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c.next >= c.end {
		return 0, 0, false
	}
	cut := x.part.cut
	return cut.span(c.next).Begin + x.part.prefix(c.next).n, cut.span(c.end - 1).End, true
}

// replied takes notice of a good reply's head. It reports false where its body
// is of no use.
func (t *transfer) replied(x *target, c *claim, r *http.Response, off int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if tag := r.Header.Get("ETag"); x.tag == "" {
		x.tag = tag
	} else if tag != x.tag {
		x.mixed = fmt.Sprintf("The server's ETag changed from %s to %s", x.tag, tag)
	}
	if r.StatusCode == http.StatusPartialContent {
		return true
	}
	ok := t.plan.comesWhole(c, off == 0)
	t.cond.Broadcast()
	return ok
}

// receive takes a claim's bytes from a body that begins with the file's byte at.
func (t *transfer) receive(x *target, c *claim, body *steady, at int64) (n int64, err error) {
	for {
		off, _, more := t.rest(x, c)
		if !more {
			return n, nil
		}
		if err := body.skip(off - at); err != nil {
			return n, err
		}
		k, err := t.receiveSome(x, c, off, body)
		n += int64(k)
		at = off + int64(k)
		if err != nil {
			return n, err
		}
	}
}

// receiveSome takes the next bytes of a piece, and notes when it is complete.
// What came before an error is kept.
func (t *transfer) receiveSome(x *target, c *claim, off int64, body io.Reader) (int, error) {
	i := c.next
	buf := buffers.Get().(*[]byte)
	k, err := io.ReadFull(body, (*buf)[:min(readSize, x.part.cut.span(i).End-off)])
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	if k == 0 {
		buffers.Put(buf)
		return 0, err
	}
	if err := x.part.write(i, (*buf)[:k]); err != nil {
		return 0, localError{err}
	}
	// Before the sequence hears of it: a wrong file is forgotten as soon as its
	// last byte is hashed.
	if x.part.full(i) {
		t.mu.Lock()
		t.plan.got(c)
		t.mu.Unlock()
	}
	x.sequence.arrived(off, k, buf)
	return k, err
}
