package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
)

// Holder says what kind of program has a port.
type Holder string

// The holders of a port.
const (
	HolderCalla  Holder = "calla"  // another Calla
	HolderHTTP   Holder = "http"   // a server that speaks HTTP
	HolderSilent Holder = "silent" // a program that does not
)

// BusyError is a port that another program has. It is only named, never
// adopted or ended.
type BusyError struct {
	Addr    netip.AddrPort
	Holder  Holder
	Version string // of another Calla
	State   State  // of another Calla
	PID     int    // where the system tells, else 0
	Program string // where the system tells
}

func (e *BusyError) Error() string {
	var who string
	switch e.Holder {
	case HolderCalla:
		who = fmt.Sprintf("another Calla (version %s, %s)", e.Version, e.State)
	case HolderHTTP:
		who = "another program, an HTTP server that is not Calla"
	default:
		who = "another program, which does not speak HTTP"
	}
	if e.PID != 0 {
		who += fmt.Sprintf(": process %d, %s", e.PID, e.Program)
	}
	return fmt.Sprintf("server: %s is in use by %s", e.Addr, who)
}

// whoHolds asks the listener at a port what it is, and the system whose it is.
func whoHolds(at netip.AddrPort) *BusyError {
	e := &BusyError{Addr: at, Holder: HolderSilent}
	e.PID, e.Program = processAt(at)
	ctx, cancel := context.WithTimeout(context.Background(), probeTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+callable(at).String()+"/health", nil)
	if err != nil {
		return e
	}
	// A client of its own: no proxy, no redirect, no connection kept.
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	response, err := client.Do(request)
	if err != nil {
		return e
	}
	defer response.Body.Close()
	e.Holder = HolderHTTP
	var health healthBody
	data, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err == nil && json.Unmarshal(data, &health) == nil && health.Server == serverName {
		e.Holder, e.Version, e.State = HolderCalla, shortName(health.Version), State(shortName(string(health.Status)))
	}
	return e
}
