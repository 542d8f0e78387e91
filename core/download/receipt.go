package download

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Receipt says which files of a folder have been proved, and how they looked
// then.
type Receipt struct {
	Folder     string  `json:"folder"` // absolute, links resolved
	Repository string  `json:"repository"`
	Revision   string  `json:"revision"`
	Total      int64   `json:"total"` // bytes of all files of the manifest
	Files      []Proof `json:"files"`
}

// Proof is one file whose pinned digest matched.
type Proof struct {
	Name   string `json:"name"`
	Digest string `json:"digest"` // as File.Digest writes it
	stamp
	Origin Origin `json:"origin"`
	Target string `json:"target,omitempty"` // of a link: where it leads
	Piece  int64  `json:"piece"`            // bytes of a piece
	States chain  `json:"states,omitempty"` // of the digest between the pieces
	// Verified is when the digest last matched; zero where that was not noted.
	Verified time.Time `json:"verified,omitzero"`
	// Damaged: a later look at the content found it wrong.
	Damaged bool `json:"damaged,omitempty"`
}

// Origin says how a file came to its folder, and so who may remove it.
type Origin string

const (
	Fetched Origin = "fetched" // by Pull, which may remove it
	Linked  Origin = "linked"  // a link by Pull to a copy of somebody else's
	Found   Origin = "found"   // it was there already
)

// stamp is what tells cheaply whether a file is still the same.
type stamp struct {
	Size     int64  `json:"size"`     // bytes
	Modified int64  `json:"modified"` // nanoseconds since 1970, by the clock of then
	Inode    uint64 `json:"inode"`
}

func stampOf(info fs.FileInfo) stamp {
	return stamp{Size: info.Size(), Modified: info.ModTime().UnixNano(), Inode: inode(info)}
}

// ErrChanged is the error of a file that is not as it was when it was proved,
// or is gone.
var ErrChanged = errors.New("changed since it was verified")

// Check compares the files of the receipt with those in its folder, without
// reading them. A difference is ErrChanged.
func (r *Receipt) Check() error {
	for i := range r.Files {
		if err := r.Files[i].check(r.Folder); err != nil {
			return fmt.Errorf("download: %s: %w", filepath.Join(r.Folder, r.Files[i].Name), err)
		}
	}
	return nil
}

func (p *Proof) check(folder string) error {
	info, err := statFile(filepath.Join(folder, p.Name))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFile) {
		return fmt.Errorf("%w: %w", ErrChanged, err)
	}
	if err != nil {
		return err
	}
	switch now := stampOf(info); {
	case p.Damaged:
		return fmt.Errorf("%w: it is damaged", ErrChanged)
	case now.Size != p.Size:
		return fmt.Errorf("%w: %d bytes, want %d", ErrChanged, now.Size, p.Size)
	case now.Modified != p.Modified:
		return fmt.Errorf("%w: written %s, want %s", ErrChanged, clock(now.Modified), clock(p.Modified))
	case now.Inode != p.Inode:
		return fmt.Errorf("%w: another file of the same size and time (inode %d, want %d)", ErrChanged, now.Inode, p.Inode)
	}
	return nil
}

func clock(ns int64) string { return time.Unix(0, ns).UTC().Format(time.RFC3339Nano) }

var errNotFile = errors.New("not a file")

// statFile describes the file that a path leads to. Folders, pipes and devices
// are errNotFile; a link that leads nowhere is fs.ErrNotExist.
func statFile(path string) (fs.FileInfo, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if to, err := os.Readlink(path); err == nil {
			return nil, fmt.Errorf("a link to %s, which is not there: %w", to, fs.ErrNotExist)
		}
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w but %v", errNotFile, info.Mode().Type())
	}
	return info, nil
}

// Complete says whether every file of m was proved.
func (r *Receipt) Complete(m Manifest) bool {
	return !slices.ContainsFunc(m.Files, func(f File) bool { return r.proof(f) == nil })
}

// Verified returns when the file was verified whose proof is the oldest; zero
// where that is not known of all.
func (r *Receipt) Verified() time.Time {
	if len(r.Files) == 0 {
		return time.Time{}
	}
	return slices.MinFunc(r.Files, func(a, b Proof) int { return a.Verified.Compare(b.Verified) }).Verified
}

// proof returns the proof of f, or nil. One of another digest is none.
func (r *Receipt) proof(f File) *Proof {
	for i := range r.Files {
		if p := &r.Files[i]; p.Name == f.Name && p.Digest == f.Digest() && p.Size == f.Size {
			return p
		}
	}
	return nil
}

// put adds a proof in the place of an older one.
func (r *Receipt) put(p Proof) {
	r.drop(p.Name)
	r.Files = append(r.Files, p)
}

func (r *Receipt) drop(name string) {
	r.Files = slices.DeleteFunc(r.Files, func(p Proof) bool { return p.Name == name })
}

// parseReceipt reads a receipt. Its names are checked: files are removed by them.
func parseReceipt(text []byte) (*Receipt, error) {
	var r Receipt
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if !filepath.IsAbs(r.Folder) {
		return nil, fmt.Errorf("folder %q, want an absolute path", r.Folder)
	}
	for _, p := range r.Files {
		if err := checkName(p.Name); err != nil {
			return nil, fmt.Errorf("file %q: %w", p.Name, err)
		}
		if p.Size < 1 || p.Size > maxSize || p.Piece < 1 {
			return nil, fmt.Errorf("file %q: %d bytes in pieces of %d", p.Name, p.Size, p.Piece)
		}
	}
	return &r, nil
}
