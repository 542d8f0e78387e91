//go:build !cgo || !(darwin || (linux && tray))

package tray

// Run refuses: this build has no menu bar.
func Run(Options, func(*Tray), func()) error { return ErrNone }

// Quit has nothing to end.
func Quit() {}
