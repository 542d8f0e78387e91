package supervise

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// ErrClaimed is a folder that another process has claimed. It was told.
var ErrClaimed = errors.New("supervise: Calla is running already")

// Claim makes this process the only app of a folder for as long as it lives.
// The kernel drops the lock at its end, so that none is ever stale.
type Claim struct {
	lock   *os.File
	listen net.Listener // nil where nobody can call
	calls  chan struct{}
}

// NewClaim claims a folder. Where another process has, that one's Calls get a
// value, and the error is ErrClaimed.
func NewClaim(dir string) (*Claim, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("supervise: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "app.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("supervise: lock: %w", err)
	}
	socket := filepath.Join(dir, "app.socket")
	err = syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		lock.Close()
		call(socket)
		return nil, ErrClaimed
	}
	if err != nil {
		lock.Close()
		return nil, fmt.Errorf("supervise: lock %s: %w", lock.Name(), err)
	}
	c := &Claim{lock: lock, calls: make(chan struct{}, 1)}
	os.Remove(socket) // of a process that was killed: the lock is ours
	// A path that is too long for a socket only costs the call.
	if c.listen, err = net.Listen("unix", socket); err == nil {
		go c.accept()
	}
	return c, nil
}

// Calls has a value when a second app was started.
func (c *Claim) Calls() <-chan struct{} { return c.calls }

func (c *Claim) accept() {
	for {
		conn, err := c.listen.Accept()
		if err != nil {
			return
		}
		conn.Close()
		select {
		case c.calls <- struct{}{}:
		default:
		}
	}
}

// call tells the process that listens that somebody wanted another.
func call(socket string) {
	if conn, err := net.DialTimeout("unix", socket, time.Second); err == nil {
		conn.Close()
	}
}

// Release gives the folder up.
func (c *Claim) Release() error {
	if c.listen != nil {
		c.listen.Close()
	}
	return c.lock.Close()
}
