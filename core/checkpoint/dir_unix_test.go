//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package checkpoint_test

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"calla/core/checkpoint"
)

// TestPipe does not wait for a pipe that bears the name of a file.
func TestPipe(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "config.json"), 0o666); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	_, err := checkpoint.Open(checkpoint.Dir(dir), anySize)
	if err == nil || !strings.Contains(err.Error(), "config.json") || !strings.Contains(err.Error(), "want a file") {
		t.Errorf("error %v, want one that names config.json and a file", err)
	}
}
