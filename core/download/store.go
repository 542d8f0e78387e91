package download

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Store is the folder of this program's data of one person. It holds receipts,
// and the folders of files that were pulled to no other place. A folder may lie
// anywhere, also where nothing can be written; its receipt lies here.
type Store struct{ root string }

// NewStore returns the store in a folder, which need not exist yet.
func NewStore(root string) Store { return Store{root} }

const receiptSuffix = ".json"

var (
	// ErrNotFound is the error of Locate where no folder has all files.
	ErrNotFound = errors.New("not on this machine")
	// ErrBusy is the error of a folder that another pull, verification or
	// removal works on, in this process or another.
	ErrBusy = errors.New("another pull or verification works there")
	// ErrNoSpace is the error of a disk without room for the files.
	ErrNoSpace = errors.New("not enough space")
)

// Folder returns where the files of m go unless somebody wants another place.
func (s Store) Folder(m Manifest) string {
	name := strings.ReplaceAll(m.Repository, "/", "--") + "--" + m.Revision[:min(12, len(m.Revision))]
	return filepath.Join(s.models(), name)
}

func (s Store) models() string { return filepath.Join(s.root, "models") }

// owns says whether a folder is one of the store's own, where nobody else keeps
// files.
func (s Store) owns(folder string) bool {
	models, err := canonical(s.models())
	return err == nil && filepath.Dir(folder) == models
}

// Locate returns a folder with all files of m, proved and unchanged since. It
// reads no more than receipts. The error is ErrNotFound where there is none,
// and ErrChanged where there was one.
func (s Store) Locate(m Manifest) (string, error) {
	all, err := s.Receipts()
	if err != nil {
		return "", err
	}
	var changed error
	for _, r := range all {
		if !r.Complete(m) {
			continue
		}
		err := r.Check()
		if err == nil {
			return r.Folder, nil
		}
		changed = err
	}
	if changed != nil {
		return "", changed
	}
	return "", fmt.Errorf("download: %s at %s: %w", m.Repository, m.Revision, ErrNotFound)
}

// Check compares a folder with its receipt, without reading its files. A folder
// that has none passes: nothing was promised of it.
func (s Store) Check(folder string) error {
	r, err := s.Receipt(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return r.Check()
}

// Receipt returns the receipt of a folder, or fs.ErrNotExist.
func (s Store) Receipt(folder string) (*Receipt, error) {
	folder, err := s.known(folder)
	if err != nil {
		return nil, fmt.Errorf("download: receipt: %w", err)
	}
	return readReceipt(s.path(folder, receiptSuffix))
}

// known returns the path by which the store knows a folder: that of a receipt,
// where the folder has one under another spelling. Disks may take names for the
// same that differ in case, or in how an accent is written.
func (s Store) known(folder string) (string, error) {
	folder, err := canonical(folder)
	if err != nil || !absent(s.path(folder, receiptSuffix)) {
		return folder, err
	}
	info, err := os.Stat(folder)
	if err != nil {
		return folder, nil // not there, so it is no other's either
	}
	all, err := s.Receipts()
	for _, r := range all {
		if other, err := os.Stat(r.Folder); err == nil && os.SameFile(info, other) {
			return r.Folder, nil
		}
	}
	return folder, err
}

func readReceipt(path string) (*Receipt, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("download: receipt: %w", err)
	}
	r, err := parseReceipt(text)
	if err != nil {
		return nil, fmt.Errorf("download: receipt %s: %w", path, err)
	}
	return r, nil
}

// Receipts returns all receipts that can be read, those of the store's own
// folders first.
func (s Store) Receipts() ([]*Receipt, error) {
	entries, err := os.ReadDir(s.receipts())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("download: receipts: %w", err)
	}
	var own, others []*Receipt
	for _, e := range entries {
		if filepath.Ext(e.Name()) != receiptSuffix {
			continue
		}
		switch r, err := readReceipt(filepath.Join(s.receipts(), e.Name())); {
		case err != nil: // a broken one promises nothing, and Pull makes it anew
		case s.owns(r.Folder):
			own = append(own, r)
		default:
			others = append(others, r)
		}
	}
	return append(own, others...), nil
}

func (s Store) receipts() string { return filepath.Join(s.root, "receipts") }

// path returns the file of ours that belongs to a folder.
func (s Store) path(folder, suffix string) string {
	sum := sha256.Sum256([]byte(folder))
	return filepath.Join(s.receipts(), hex.EncodeToString(sum[:16])+suffix)
}

// save keeps a receipt; the old one stays until the new one is on the disk.
func (s Store) save(r *Receipt) error {
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return fmt.Errorf("download: receipt: %w", err)
	}
	if err := os.MkdirAll(s.receipts(), 0o777); err != nil {
		return fmt.Errorf("download: receipt: %w", err)
	}
	if err := replaceFile(s.path(r.Folder, receiptSuffix), text); err != nil {
		return fmt.Errorf("download: receipt: %w", err)
	}
	return nil
}

// replaceFile gives a file a new content, all of it or none. Its callers hold
// the lock of what the file is about.
func replaceFile(path string, content []byte) error {
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	step("new content written")
	return moveFile(f.Name(), path)
}

// moveFile renames a file within a folder so that the new name outlives a loss
// of power.
func moveFile(from, to string) error {
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(to))
}

// canonical returns a folder's absolute path without links.
func canonical(folder string) (string, error) {
	abs, err := filepath.Abs(folder)
	if err != nil {
		return "", err
	}
	if real, err := filepath.EvalSymlinks(abs); err == nil {
		return real, nil
	}
	return abs, nil // not there (any more)
}
