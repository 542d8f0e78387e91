package bench

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// errSilent is an answer that took longer than anybody waits.
var errSilent = errors.New("the answer did not come in time")

// tellAfter is how long an answer stands still before it is told, and again.
const tellAfter = 10 * time.Second

// vigil ends a request whose first token takes longer than the server's patience,
// or whose other tokens do, all of them together: one that trickles ends too. It
// tells meanwhile whom it waits for.
type vigil struct {
	server *Server
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu    sync.Mutex
	since time.Time // of the last token
	first bool      // the first came
	over  *time.Timer
	told  *time.Timer
	ended bool
}

// watchOver begins a vigil, and returns the context of the request.
func (s *Server) watchOver(ctx context.Context) (context.Context, *vigil) {
	v := &vigil{server: s, since: time.Now()}
	v.ctx, v.cancel = context.WithCancelCause(ctx)
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.Patience > 0 {
		v.over = time.AfterFunc(s.Patience, func() { v.cancel(errSilent) })
	}
	if s.Tell != nil {
		v.told = time.AfterFunc(tellAfter, v.tell)
	}
	return v.ctx, v
}

// heard says that a token came.
func (v *vigil) heard() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.since = time.Now()
	if v.over != nil && !v.first {
		v.over.Reset(v.server.Patience)
	}
	v.first = true
	if v.told != nil {
		v.told.Reset(tellAfter)
	}
}

func (v *vigil) tell() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ended {
		return
	}
	line := fmt.Sprintf("waiting for %s at %s: no token for %v", v.server.Name, v.server.URL, time.Since(v.since).Round(time.Second))
	if v.server.Patience > 0 {
		line += fmt.Sprintf("; --patience is %v", v.server.Patience)
	}
	v.server.Tell(line)
	v.told.Reset(tellAfter)
}

// end ends the vigil. Nothing is told after it.
func (v *vigil) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.ended = true
	if v.over != nil {
		v.over.Stop()
	}
	if v.told != nil {
		v.told.Stop()
	}
	v.cancel(nil)
}

// explain returns the error of a request, which is errSilent where the vigil
// ended it.
func (v *vigil) explain(err error) error {
	if err != nil && context.Cause(v.ctx) == errSilent {
		return v.server.fault("%w: its first token, or all the others, took more than %v; is it stuck? wait longer with --patience", errSilent, v.server.Patience)
	}
	return err
}
