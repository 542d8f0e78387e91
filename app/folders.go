package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// folders are where this system keeps what a program has for one person.
type folders struct {
	data        string // the model, its receipts and the key
	preferences string // the file
	log         string // the file
}

func findFolders() (folders, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return folders{}, fmt.Errorf("no home folder: %w", err)
	}
	if runtime.GOOS == "darwin" {
		data := filepath.Join(home, "Library", "Application Support", "Calla")
		return folders{data, filepath.Join(data, "preferences.txt"), filepath.Join(home, "Library", "Logs", "Calla", "calla.log")}, nil
	}
	return folders{
		data:        filepath.Join(xdgHome("XDG_DATA_HOME", home, ".local/share"), "calla"),
		preferences: filepath.Join(xdgHome("XDG_CONFIG_HOME", home, ".config"), "calla", "preferences.txt"),
		log:         filepath.Join(xdgHome("XDG_STATE_HOME", home, ".local/state"), "calla", "calla.log"),
	}, nil
}

// xdgHome is a folder of the XDG base directory specification: one that is not
// absolute counts as not set.
func xdgHome(variable, home, fallback string) string {
	if dir := os.Getenv(variable); filepath.IsAbs(dir) {
		return dir
	}
	return filepath.Join(home, fallback)
}
