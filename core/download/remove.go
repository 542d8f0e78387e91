package download

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Removed says what Remove did.
type Removed struct {
	Freed int64    `json:"freed"` // bytes
	Kept  []string `json:"kept"`  // paths of files that were proved but not fetched by us
}

// Remove takes from a folder what Pull brought: files that it fetched, links
// that it made, and what is unfinished; then the folder, if nothing else is in
// it, and the receipt. A folder without a receipt is fs.ErrNotExist.
func (s Store) Remove(folder string) (Removed, error) {
	r, err := s.Receipt(folder)
	if err != nil {
		return Removed{}, err
	}
	out, err := s.remove(r)
	if err != nil {
		return out, fmt.Errorf("download: remove %s: %w", r.Folder, err)
	}
	return out, nil
}

func (s Store) remove(r *Receipt) (out Removed, err error) {
	release, err := lockFolder(r.Folder)
	switch {
	case err == nil:
		defer release()
		if out, err = r.removeFiles(); err != nil {
			return out, err
		}
	case !errors.Is(err, fs.ErrNotExist): // what is gone needs no removal
		return out, err
	}
	if len(out.Kept) == 0 {
		os.Remove(r.Folder) // refused where something else is in it
	}
	if err := s.Resume(r.Folder); err != nil {
		return out, err
	}
	return out, os.Remove(s.path(r.Folder, receiptSuffix))
}

func (r *Receipt) removeFiles() (out Removed, err error) {
	for _, p := range r.Files {
		path := filepath.Join(r.Folder, p.Name)
		if absent(path) {
			continue
		}
		if !p.removable(path) {
			out.Kept = append(out.Kept, path)
			continue
		}
		if p.Origin == Fetched {
			out.Freed += p.Size
		}
		if err := os.Remove(path); err != nil {
			return out, err
		}
	}
	finals, err := unfinished(r.Folder)
	if err != nil {
		return out, err
	}
	for _, final := range finals {
		out.Freed += unfinishedBytes(final)
		if err := removePart(final); err != nil {
			return out, err
		}
	}
	return out, nil
}

// removable says whether the file at path is what Pull brought. What somebody
// put there in its place is not.
func (p *Proof) removable(path string) bool {
	info, err := os.Lstat(path)
	if err != nil {
		return false
	}
	switch p.Origin {
	case Linked:
		to, err := os.Readlink(path)
		return err == nil && to == p.Target
	case Fetched:
		now := stampOf(info)
		// A disk that numbers its files anew keeps size and time.
		return info.Mode().IsRegular() && (now.Inode == p.Inode || now.Size == p.Size && now.Modified == p.Modified)
	}
	return false
}
