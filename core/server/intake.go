package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"golang.org/x/sync/semaphore"
)

// intake bounds the memory of bodies on their way to becoming prompts. One of
// 16 MB takes hundreds of MB as text, values and tokens, and the queue, which
// bounds what comes after, does not see them yet.
type intake struct {
	received atomic.Int64 // bytes of bodies that are no prompts yet
	most     int64
	work     *semaphore.Weighted // bytes of bodies that are being read as JSON or made prompts
	workMost int64
}

const (
	maxReceived = 16 * maxBody
	// maxAtWork is less than the largest body, which is worked on alone. A byte
	// of it can become fifty: a token id in an array has two.
	maxAtWork = 4 << 20
)

func newIntake(most, workMost int64) *intake {
	return &intake{most: most, work: semaphore.NewWeighted(workMost), workMost: workMost}
}

// hold is what one request has of the intake.
type hold struct {
	*intake
	bytes, working int64
}

// errBusy says that bodies take all the memory they may.
var errBusy = errors.New("server: too many bodies at once")

// reader counts what is read of a body, and fails where that is too much
// together with all others.
func (h *hold) reader(body io.Reader) io.Reader { return &heldReader{h, body} }

type heldReader struct {
	hold *hold
	body io.Reader
}

func (r *heldReader) Read(p []byte) (int, error) {
	n, err := r.body.Read(p)
	r.hold.bytes += int64(n)
	if r.hold.received.Add(int64(n)) > r.hold.most {
		return 0, errBusy
	}
	return n, err
}

// begin waits until there is room for work on a body that has been read.
func (h *hold) begin(ctx context.Context) error {
	n := min(h.bytes, h.workMost)
	if err := h.work.Acquire(ctx, n); err != nil {
		return context.Cause(ctx)
	}
	h.working += n
	return nil
}

// release gives back all that the request has.
func (h *hold) release() {
	h.received.Add(-h.bytes)
	h.work.Release(h.working)
	h.bytes, h.working = 0, 0
}

type holdKey struct{}

// holdOf returns the request's hold. A request that did not come through held
// has one that nobody shares.
func holdOf(r *http.Request) *hold {
	if h, ok := r.Context().Value(holdKey{}).(*hold); ok {
		return h
	}
	return &hold{intake: newIntake(maxReceived, maxAtWork)}
}

// held gives each request a hold.
func (s *server) held(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := &hold{intake: s.intake}
		defer h.release()
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), holdKey{}, h)))
	})
}
