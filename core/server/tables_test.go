package server

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of the README anew")

// TestReadme holds the README to the tables that the decoder works by. It is
// written anew by
//
//	go test ./core/server -run TestReadme -update
func TestReadme(t *testing.T) {
	const (
		path  = "../../README.md"
		begin = "<!-- capabilities:begin -->\n"
		end   = "<!-- capabilities:end -->"
	)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("README.md has not the marks %s and %s", begin, end)
	}
	want := "\n" + Tables() + "\n"
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Error("README.md has other tables than the server; write them with go test ./core/server -run TestReadme -update")
	}
}
