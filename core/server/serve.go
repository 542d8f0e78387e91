package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"calla/core/engine"
)

const (
	// headerTime is how long a client may take to send its headers.
	headerTime = 10 * time.Second
	// idleTime is how long a connection may wait for its next request.
	idleTime = 2 * time.Minute
	// maxHeader bounds the headers of a request.
	maxHeader = 64 << 10
)

// Serve answers requests on all listeners until ctx ends. Then nothing new is
// accepted; requests that run have until grace to finish and are cancelled
// after it. It returns nil after a stop that ctx asked for.
func Serve(ctx context.Context, listeners []net.Listener, h http.Handler, grace time.Duration) error {
	requests, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(engine.ErrStopped)
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: headerTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHeader,
		// OPTIONS * is for the handler's guard to judge, too.
		DisableGeneralOptionsHandler: true,
		BaseContext:                  func(net.Listener) context.Context { return requests },
		// What net/http says of a connection can hold what the client sent.
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	failed := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { failed <- srv.Serve(l) }()
	}
	left := len(listeners)
	var err error
	select {
	case <-ctx.Done():
	case err = <-failed:
		left--
		err = fmt.Errorf("server: serve: %w", err)
	}
	stop(srv, grace, cancel)
	for ; left > 0; left-- {
		<-failed
	}
	return err
}

// stop ends a server: first what is idle, then, after grace, what runs.
func stop(srv *http.Server, grace time.Duration, cancel context.CancelCauseFunc) {
	timed, done := context.WithTimeout(context.Background(), grace)
	defer done()
	if srv.Shutdown(timed) == nil {
		return
	}
	// Handlers that are cancelled say so to their clients; a client that does
	// not read it is cut off.
	cancel(engine.ErrStopped)
	last, lastDone := context.WithTimeout(context.Background(), time.Second)
	defer lastDone()
	if err := srv.Shutdown(last); errors.Is(err, context.DeadlineExceeded) {
		srv.Close()
	}
}
