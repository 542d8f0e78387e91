//go:build !linux && !(darwin && cgo)

package desktop

import "errors"

// Here are words for any system.
var Here = Words{Machine: "this machine", FileManager: "File Manager"}

// New returns a desktop that can do nothing: this build has no menu.
func New() Desktop { return none{} }

type none struct{}

var errNone = errors.New("desktop: not part of this build, which has no menu")

func (none) Ask(string, string, string) (bool, error) { return false, errNone }
func (none) Tell(string, string) error                { return errNone }
func (none) Copy(string) error                        { return errNone }
func (none) Open(string) error                        { return errNone }
func (none) Reveal(string) error                      { return errNone }
func (none) Awake(string) (func(), error)             { return nil, errNone }
