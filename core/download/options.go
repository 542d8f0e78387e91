package download

import (
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Options say what Pull and Verify work on, and how.
type Options struct {
	Manifest Manifest
	Store    Store
	Folder   string // where the files are to be; empty: Store.Folder
	// Progress is told how things are, several times a second and never from two
	// goroutines at once. It may be nil.
	Progress func(Event)

	// The rest is Pull's alone.

	Places      []string // folders in which copies may be; see Places
	Endpoint    string   // empty: DefaultEndpoint
	Token       string   // for the endpoint alone; may be empty
	UserAgent   string
	Connections int       // at once; 0: DefaultConnections
	Throttle    *Throttle // nil: none
	// Proxy chooses a request's proxy; nil: none. See SystemProxy.
	Proxy func(*http.Request) (*url.URL, error)

	patience patience
	piece    int64
	now      func() time.Time
}

// DefaultConnections is how many connections a pull has: two for each large
// file of the pinned manifest.
const DefaultConnections = 8

// complete fills in what was left open.
func (o *Options) complete() error {
	if o.Folder == "" {
		o.Folder = o.Store.Folder(o.Manifest)
	}
	if o.Connections == 0 {
		o.Connections = DefaultConnections
	}
	if o.Connections < 1 {
		return fmt.Errorf("%d connections, want at least 1", o.Connections)
	}
	if o.Throttle == nil {
		o.Throttle = NewThrottle(0)
	}
	if o.Progress == nil {
		o.Progress = func(Event) {}
	}
	if o.patience == (patience{}) {
		o.patience = usual
	}
	if o.piece == 0 {
		o.piece = PieceSize
	}
	if o.now == nil {
		o.now = time.Now
	}
	return o.Manifest.check()
}
