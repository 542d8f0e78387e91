package main

import (
	"path/filepath"
	"testing"

	"calla/core/server"
)

// A key that is made is one that the server takes, and no two are the same.
func TestWriteKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "api-key")
	seen := map[string]bool{}
	for range 3 {
		if err := writeKey(path); err != nil {
			t.Fatal(err)
		}
		key, err := server.ReadKey(path)
		if err != nil {
			t.Fatal(err)
		}
		if seen[key] {
			t.Errorf("the key %s a second time", key)
		}
		seen[key] = true
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
