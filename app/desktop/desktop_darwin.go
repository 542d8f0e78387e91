//go:build cgo

package desktop

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/progrium/darwinkit/dispatch"
	"github.com/progrium/darwinkit/objc"
)

// Here are the words of macOS.
var Here = Words{Machine: "this Mac", FileManager: "Finder"}

// New returns the desktop of a Mac.
//
// AppKit's classes are taken by name: the bindings of all of AppKit are large,
// and four classes are needed. Results are read as objects or as 64-bit
// integers only, since the bridge writes eight bytes for every small one, and
// no Go function is given to Objective-C but through dispatch.
func New() Desktop { return mac{} }

type mac struct{}

// onMain runs f on the main thread and waits for it. f must not wait for
// anything that needs the main thread, and onMain must not be called on it.
func onMain[T any](f func() T) T {
	result := make(chan T, 1)
	dispatch.MainQueue().DispatchAsync(func() {
		objc.WithAutoreleasePool(func() { result <- f() })
	})
	return <-result
}

func class(name string) objc.Class { return objc.GetClass(name) }

func object(o objc.Handle, selector string, args ...any) objc.Object {
	return objc.Call[objc.Object](o, objc.Sel(selector), args...)
}

func integer(o objc.Handle, selector string, args ...any) int64 {
	return objc.Call[int64](o, objc.Sel(selector), args...)
}

// yes reads a BOOL, which is the lowest byte of what is returned.
func yes(o objc.Handle, selector string, args ...any) bool {
	return objc.Call[uint64](o, objc.Sel(selector), args...)&0xff != 0
}

func send(o objc.Handle, selector string, args ...any) {
	objc.Call[objc.Void](o, objc.Sel(selector), args...)
}

// firstButton is what NSAlert returns for the button that was added first.
const firstButton = 1000

func (mac) Ask(title, text, button string) (bool, error) {
	return onMain(func() bool { return alert(title, text, button, "Cancel") == firstButton }), nil
}

func (mac) Tell(title, text string) error {
	onMain(func() int64 { return alert(title, text, "OK") })
	return nil
}

func alert(title, text string, buttons ...string) int64 {
	send(object(class("NSApplication"), "sharedApplication"), "activate")
	a := object(object(class("NSAlert"), "new"), "autorelease")
	send(a, "setMessageText:", title)
	send(a, "setInformativeText:", text)
	for _, b := range buttons {
		object(a, "addButtonWithTitle:", b)
	}
	return integer(a, "runModal")
}

func (mac) Copy(text string) error {
	return onMain(func() error {
		board := object(class("NSPasteboard"), "generalPasteboard")
		integer(board, "clearContents")
		if !yes(board, "setString:forType:", text, "public.utf8-plain-text") {
			return errors.New("desktop: the pasteboard refuses the text")
		}
		return nil
	})
}

func (mac) Open(target string) error {
	return onMain(func() error {
		url := locator(target)
		if url.IsNil() || !yes(object(class("NSWorkspace"), "sharedWorkspace"), "openURL:", url) {
			return fmt.Errorf("desktop: no program opens %s", target)
		}
		return nil
	})
}

func locator(target string) objc.Object {
	if strings.HasPrefix(target, "http://") || strings.HasPrefix(target, "https://") {
		return object(class("NSURL"), "URLWithString:", target)
	}
	return object(class("NSURL"), "fileURLWithPath:", target)
}

func (mac) Reveal(path string) error {
	return onMain(func() error {
		urls := object(class("NSArray"), "arrayWithObject:", object(class("NSURL"), "fileURLWithPath:", path))
		send(object(class("NSWorkspace"), "sharedWorkspace"), "activateFileViewerSelectingURLs:", urls)
		return nil
	})
}

// userInitiated is NSActivityUserInitiated: no App Nap, and no idle sleep.
const userInitiated = uint64(0x00ffffff | 1<<20)

func (mac) Awake(reason string) (func(), error) {
	activity := onMain(func() objc.Object {
		a := object(object(class("NSProcessInfo"), "processInfo"), "beginActivityWithOptions:reason:", userInitiated, reason)
		return object(a, "retain")
	})
	var once sync.Once
	return func() {
		once.Do(func() {
			// Not waited for: at the end of the process the main thread no
			// longer serves its queue, and the system ends the activity.
			dispatch.MainQueue().DispatchAsync(func() {
				objc.WithAutoreleasePool(func() {
					send(object(class("NSProcessInfo"), "processInfo"), "endActivity:", activity)
					send(activity, "release")
				})
			})
		})
	}, nil
}
