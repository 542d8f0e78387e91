package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Xcode lists the models before it has a key to send.
func TestModelsWithoutKey(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("a-key-of-sixteen-bytes"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, open := range []bool{false, true} {
		s := serveFlags{settings: demoSettings(), host: "localhost", keyFile: file, models: open}
		url := serveFor(t, s)
		models, chat := statusOf(t, "GET", url+"/v1/models"), statusOf(t, "POST", url+"/v1/chat/completions")
		want := http.StatusUnauthorized
		if open {
			want = http.StatusOK
		}
		if models != want || chat != http.StatusUnauthorized {
			t.Errorf("--open-models=%t: models %d, chat %d, want %d and 401", open, models, chat, want)
		}
	}
}

func statusOf(t *testing.T, method, url string) int {
	t.Helper()
	r, err := http.NewRequest(method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}
