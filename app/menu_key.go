package main

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"calla/app/whole"
	"calla/core/server"
)

// keyPath is the file of the key that Calla makes.
func (a *app) keyPath() string { return filepath.Join(a.folders.data, "api-key") }

// key is the key in force.
func (a *app) key() (string, error) { return server.ReadKey(a.prefs.get().Get("key-file")) }

// setKey has requests carry a key, or not. The key stays for the next time.
func (a *app) setKey(on bool) {
	if !on {
		a.setPreference("key-file", "")
		return
	}
	if _, err := os.Stat(a.keyPath()); errors.Is(err, fs.ErrNotExist) {
		if !a.try("make a key", writeKey(a.keyPath())) {
			go a.sendLate(a.readPreferences)
			return
		}
	}
	a.setPreference("key-file", a.keyPath())
}

// makeKey makes another key. Where a key is asked for, it is this one from now
// on.
func (a *app) makeKey() {
	ok := a.try("make a key", writeKey(a.keyPath()))
	if in := a.prefs.get().Get("key-file"); ok && in != "" && in != a.keyPath() {
		a.setPreference("key-file", a.keyPath())
		return
	}
	go a.sendLate(a.readPreferences)
}

// writeKey puts a new key into a file that its owner alone can read, all of it
// or none.
func writeKey(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return whole.WriteText(path, 0o600, "calla-"+rand.Text()+rand.Text()+"\n")
}
