package download

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// ErrIdle is the error of Pause where no pull runs.
var ErrIdle = errors.New("no pull runs there")

// Pause holds up the pull that works on a folder, in whatever process, until
// Resume or the next Pull. It takes about as long as there is between two
// events.
func (s Store) Pause(folder string) error {
	folder, err := s.known(folder)
	if err != nil {
		return fmt.Errorf("download: pause: %w", err)
	}
	release, err := lockFolder(folder)
	if err == nil {
		release()
		err = ErrIdle
	}
	if !errors.Is(err, ErrBusy) {
		return fmt.Errorf("download: pause: %w", err)
	}
	if err := os.WriteFile(s.pauseMark(folder), nil, 0o666); err != nil {
		return fmt.Errorf("download: pause: %w", err)
	}
	return nil
}

// Resume lets a paused pull go on. Where nothing is paused it does nothing.
func (s Store) Resume(folder string) error {
	folder, err := s.known(folder)
	if err != nil {
		return fmt.Errorf("download: resume: %w", err)
	}
	if err := os.Remove(s.pauseMark(folder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("download: resume: %w", err)
	}
	return nil
}

// pauseMark is a file that is there while a folder's pull is to hold still.
func (s Store) pauseMark(folder string) string { return s.path(folder, ".paused") }

// obeyMark looks for the mark and does as it says. It leaves alone who paused
// the throttle otherwise.
func (w *work) obeyMark() { w.hold(!absent(w.Store.pauseMark(w.folder))) }

// hold pauses the throttle, or lets go what an earlier call paused.
func (w *work) hold(paused bool) {
	switch {
	case paused && !w.held:
		w.Throttle.Pause()
	case !paused && w.held:
		w.Throttle.Resume()
	}
	w.held = paused
}
