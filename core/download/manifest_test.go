package download

import (
	"bytes"
	"strings"
	"testing"
)

func TestPinned(t *testing.T) {
	m := Pinned()
	if m.Repository != "mlx-community/Qwen3.6-35B-A3B-4bit" || len(m.Revision) != 40 || len(m.Files) != 10 {
		t.Errorf("pinned %s at %s with %d files", m.Repository, m.Revision, len(m.Files))
	}
	if got, want := m.Bytes(), int64(20_422_442_065); got != want {
		t.Errorf("pinned files have %d bytes, want %d", got, want)
	}
	f, ok := m.File("generation_config.json")
	if want := "git-sha1:023756cfadf88e5bf69eefeee3e172f38c448d64"; !ok || f.Digest() != want {
		t.Errorf("generation_config.json has digest %s, want %s", f.Digest(), want)
	}
	f, ok = m.File("config.json")
	if want := "sha256:a822a9e48b0aafbe3144ec37d4fb067e178ed96615ce6e4420b3149893cc5767"; !ok || f.Digest() != want {
		t.Errorf("config.json, pinned in both ways, has digest %s, want %s", f.Digest(), want)
	}
}

// manifestText is a valid manifest with one file, whose fields a test replaces.
const manifestText = `{"repository": "a/b", "revision": "c0ffee", "files": [
	{"name": "config.json", "size": 5, "sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"}]}`

func TestParseManifest(t *testing.T) {
	if _, err := ParseManifest(strings.NewReader(manifestText)); err != nil {
		t.Fatalf("the valid manifest: %v", err)
	}
	file := manifestText[strings.Index(manifestText, `{"name"`):strings.Index(manifestText, `]}`)]
	for _, tt := range []struct {
		name, old, new string
		want           string // part of the error
	}{
		{"no JSON", "{", "<html>", "invalid character"},
		{"empty", manifestText, "", "EOF"},
		{"two values", `]}`, `]} {}`, "more than one"},
		{"an unknown field", `"size"`, `"sizes"`, "unknown field"},
		{"too long", `"a/b"`, `"` + strings.Repeat("a", maxManifest) + `/b"`, "more than"},
		{"no owner", `"a/b"`, `"b"`, "owner/name"},
		{"a repository that climbs", `"a/b"`, `"../b"`, "owner/name"},
		{"a mirror that climbs", `"a/b"`, `"a/b", "known_mirrors_with_the_same_shards": ["a/../b"]`, "owner/name"},
		{"no revision", `"c0ffee"`, `""`, "want a commit"},
		{"a revision that climbs", `"c0ffee"`, `"../x"`, "want a commit"},
		{"no files", file, ``, "no files"},
		{"a file twice", file, file + "," + file, "twice"},
		{"a file twice but for case", file, file + "," + strings.Replace(file, "config", "Config", 1), "twice"},
		{"no name", `"config.json"`, `""`, "a name of 0 bytes"},
		{"a name that climbs", `"config.json"`, `"../config.json"`, "plain file name"},
		{"an absolute name", `"config.json"`, `"/etc/passwd"`, "plain file name"},
		{"a name with a backslash", `"config.json"`, `"a\\b"`, "plain file name"},
		{"a hidden name", `"config.json"`, `".profile"`, "without a dot"},
		{"a name with a blank at its end", `"config.json"`, `"config.json "`, "without a dot or blank"},
		{"a name with a line break", `"config.json"`, `"a\nb"`, "plain file name"},
		{"the name of a part", `"config.json"`, `"model.part"`, "unfinished"},
		{"the name of a journal", `"config.json"`, `"model.PART.log"`, "unfinished"},
		{"an empty file", `5`, `0`, "0 bytes"},
		{"a negative size", `5`, `-5`, "-5 bytes"},
		{"a size that overflows", `5`, `9223372036854775807`, "bytes, want"},
		{"a size with a fraction", `5`, `5.5`, "cannot unmarshal"},
		{"no digest", `"sha256": "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"`, `"sha256": ""`, "no digest"},
		{"a short digest", `"2cf24d`, `"`, "64 lower-case"},
		{"a digest in capitals", `2cf24d`, `2CF24D`, "64 lower-case"},
		{"a SHA-256 as a SHA-1", `"sha256"`, `"git_sha1"`, "40 lower-case"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if !strings.Contains(manifestText, tt.old) {
				t.Fatalf("the manifest has no %q", tt.old)
			}
			_, err := ParseManifest(strings.NewReader(strings.Replace(manifestText, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// FuzzParseManifest checks that whatever is accepted names files of one folder.
func FuzzParseManifest(f *testing.F) {
	f.Add(pinned)
	f.Add([]byte(manifestText))
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := ParseManifest(bytes.NewReader(text))
		if err != nil {
			return
		}
		if m.Bytes() < int64(len(m.Files)) {
			t.Errorf("%d files of %d bytes", len(m.Files), m.Bytes())
		}
		for _, file := range m.Files {
			if strings.ContainsAny(file.Name, "/\\\x00") || file.Name == "." || file.Name == ".." {
				t.Errorf("accepted the name %q", file.Name)
			}
		}
	})
}
