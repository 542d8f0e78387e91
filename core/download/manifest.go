package download

import (
	"bytes"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Manifest pins the files of one revision of a repository. Nothing else is
// fetched or trusted.
type Manifest struct {
	About      string `json:"about,omitempty"`
	Repository string `json:"repository"` // owner/name
	Revision   string `json:"revision"`   // a commit; never a branch, which moves
	Files      []File `json:"files"`
	// Mirrors are repositories that have some of the files too. They are looked
	// for on this machine only, never fetched from.
	Mirrors  []string `json:"known_mirrors_with_the_same_shards,omitempty"`
	Evidence string   `json:"evidence,omitempty"` // where the digests are from
}

// File is one pinned file. It has a SHA-256, or the SHA-1 that git names a blob
// by; of both the SHA-256 counts.
type File struct {
	Name    string `json:"name"`
	Size    int64  `json:"size"` // bytes
	SHA256  string `json:"sha256,omitempty"`
	GitSHA1 string `json:"git_sha1,omitempty"`
}

// pinned.json was put together from public listings of the repository, as its
// field "evidence" says.
//
//go:embed pinned.json
var pinned []byte

// Pinned returns the manifest that is part of the program.
func Pinned() Manifest {
	m, err := ParseManifest(bytes.NewReader(pinned))
	if err != nil {
		panic(err)
	}
	return m
}

const (
	// maxManifest is the longest manifest, in bytes.
	maxManifest = 1 << 20
	// maxSize bounds a file so that sums over a manifest can't overflow.
	maxSize = 1 << 42
)

// ParseManifest reads and checks a manifest in the form of pinned.json.
func ParseManifest(r io.Reader) (Manifest, error) {
	var m Manifest
	text, err := io.ReadAll(io.LimitReader(r, maxManifest+1))
	if err != nil {
		return m, fmt.Errorf("download: manifest: %w", err)
	}
	if len(text) > maxManifest {
		return m, fmt.Errorf("download: manifest: more than %d bytes", maxManifest)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, fmt.Errorf("download: manifest: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return m, errors.New("download: manifest: more than one JSON value")
	}
	if err := m.check(); err != nil {
		return m, fmt.Errorf("download: manifest: %w", err)
	}
	return m, nil
}

var (
	repositoryForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	revisionForm   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

func (m Manifest) check() error {
	for _, r := range append([]string{m.Repository}, m.Mirrors...) {
		if !repositoryForm.MatchString(r) {
			return fmt.Errorf("repository %q, want owner/name", r)
		}
	}
	if !revisionForm.MatchString(m.Revision) {
		return fmt.Errorf("revision %q, want a commit", m.Revision)
	}
	if len(m.Files) == 0 {
		return errors.New("no files")
	}
	seen := map[string]bool{}
	for _, f := range m.Files {
		if err := f.check(); err != nil {
			return fmt.Errorf("file %q: %w", f.Name, err)
		}
		// Many disks take two such names for one.
		if folded := strings.ToLower(f.Name); seen[folded] {
			return fmt.Errorf("file %q is there twice", f.Name)
		} else {
			seen[folded] = true
		}
	}
	return nil
}

func (f File) check() error {
	if err := checkName(f.Name); err != nil {
		return err
	}
	if f.Size < 1 || f.Size > maxSize {
		return fmt.Errorf("%d bytes, want 1 to %d", f.Size, int64(maxSize))
	}
	if f.SHA256 == "" && f.GitSHA1 == "" {
		return errors.New("no digest")
	}
	for _, d := range []struct {
		what, text string
		digits     int
	}{{"sha256", f.SHA256, 64}, {"git_sha1", f.GitSHA1, 40}} {
		if _, err := hex.DecodeString(d.text); d.text != "" && (err != nil || len(d.text) != d.digits || d.text != strings.ToLower(d.text)) {
			return fmt.Errorf("%s %q, want %d lower-case hexadecimal digits", d.what, d.text, d.digits)
		}
	}
	return nil
}

// checkName lets a name through that is a plain file name on every system and
// none that this package gives to files of its own.
func checkName(name string) error {
	switch {
	case name == "" || len(name) > 200:
		return fmt.Errorf("a name of %d bytes, want 1 to 200", len(name))
	case !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(`/\:*?"<>|`, r) }):
		return errors.New("want a plain file name")
	case strings.HasPrefix(name, "."), strings.HasSuffix(name, "."), strings.TrimSpace(name) != name:
		return errors.New("want a name without a dot or blank at its ends")
	case strings.HasSuffix(strings.ToLower(name), partSuffix), strings.HasSuffix(strings.ToLower(name), journalSuffix):
		return errors.New("a name of unfinished files")
	}
	return nil
}

// File returns the pinned file of that name.
func (m Manifest) File(name string) (File, bool) {
	for _, f := range m.Files {
		if f.Name == name {
			return f, true
		}
	}
	return File{}, false
}

// Bytes returns the size of all files.
func (m Manifest) Bytes() int64 {
	var n int64
	for _, f := range m.Files {
		n += f.Size
	}
	return n
}
