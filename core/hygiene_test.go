package core_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// stains are what a tracked file must not hold, because it ties the source to
// one machine or leaves work undone. The patterns do not match themselves.
var stains = []struct {
	what    string
	pattern *regexp.Regexp
}{
	{"a path of one machine", regexp.MustCompile("(?m)(?:^|[\\s\"'`=(:,;\\[{])/(?:work|root|home/\\w+|Users/\\w+)/")},
	{"the host of a package registry", regexp.MustCompile(`\b(?:pypi\.org|pythonhosted\.org|npmjs\.(?:org|com)|(?:proxy|sum)\.golang\.org|crates\.io|debian\.org|maven\.org)\b`)},
	{"work left undone", regexp.MustCompile(`\b(?:TO[D]O|FIX[M]E)\b`)},
}

func TestTrackedFiles(t *testing.T) {
	cmd := exec.Command("git", "ls-files", "-z")
	cmd.Dir = ".."
	list, err := cmd.Output()
	if err != nil {
		t.Skipf("needs git and a checkout: git ls-files: %v", err)
	}
	names := strings.Split(strings.TrimSuffix(string(list), "\x00"), "\x00")
	if len(names) < 5 {
		t.Fatalf("git lists %d files, want the whole repository", len(names))
	}
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join("..", name))
		if os.IsNotExist(err) {
			continue // deleted, not yet committed
		}
		if err != nil {
			t.Errorf("read a tracked file: %v", err)
			continue
		}
		for _, s := range stained(content) {
			t.Errorf("%s: %s", name, s)
		}
	}
}

// stained returns a line for every stain in a text file, and none for a binary.
func stained(content []byte) []string {
	if bytes.IndexByte(content, 0) >= 0 {
		return nil
	}
	var out []string
	for _, s := range stains {
		for _, m := range s.pattern.FindAllIndex(content, -1) {
			line := 1 + bytes.Count(content[:m[0]], []byte("\n"))
			out = append(out, fmt.Sprintf("line %d: %s: %q", line, s.what, content[m[0]:m[1]]))
		}
	}
	return out
}

func TestStained(t *testing.T) {
	for _, tt := range []struct {
		name    string
		content string
		want    int
	}{
		{"plain text", "calla serve --model demo\n", 0},
		{"a path of a home", "see /ho" + "me/ann/models\n", 1},
		{"a path of a workplace", "open(\"/wo" + "rk/x\")\n", 1},
		{"a path of a Mac's person", "/Us" + "ers/ann/x\n", 1},
		{"a path of a web address", "https://example.com/work/x\n", 0},
		{"a relative path", "../work/x and ./root/x\n", 0},
		{"a system path", "/usr/bin/env /dev/null /tmp/x\n", 0},
		{"a registry", "\"resolved\": \"https://registry.npm" + "js.org/x\"\n", 1},
		{"a longer name with a registry's in it", "mypy" + "pi.organic\n", 0},
		{"work left undone", "// TO" + "DO: later\n// FIX" + "ME\n", 2},
		{"part of a word", "MASTO" + "DON TODOS\n", 0},
		{"a binary", "\x00/ro" + "ot/x\n", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := stained([]byte(tt.content)); len(got) != tt.want {
				t.Errorf("stained(%q) = %q, want %d", tt.content, got, tt.want)
			}
		})
	}
}
