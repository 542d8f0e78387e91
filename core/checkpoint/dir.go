package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// dir is a folder on disk.
type dir string

// Dir returns the checkpoint files of a folder. Links are followed, also out of
// the folder, as the caches of the Hugging Face Hub need; subfolders are not
// looked into. Files are mapped read-only.
func Dir(path string) Source { return dir(path) }

func (d dir) String() string { return string(d) }

// List fails with an error that says what the path is instead of a folder.
func (d dir) List() ([]string, error) {
	info, err := os.Stat(string(d))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("no such folder: %w", fs.ErrNotExist)
	case err != nil:
		return nil, fmt.Errorf("folder: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("%s, want a folder; %s", describeFile(string(d)), wanted)
	}
	entries, err := os.ReadDir(string(d))
	if err != nil {
		return nil, fmt.Errorf("list the folder: %w", err)
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// isHubCache reports whether the folder is a repository's in the cache of the
// Hugging Face Hub, which holds checkpoints two levels down.
func (d dir) isHubCache() bool {
	info, err := os.Stat(filepath.Join(string(d), "snapshots"))
	return err == nil && info.IsDir()
}

// name returns the name of the folder. Snapshots in a Hub cache are named by
// their revision, so there it is the repository's, from
// models--owner--name/snapshots/revision.
func (d dir) name() string {
	path, err := filepath.Abs(string(d))
	if err != nil {
		path = string(d)
	}
	if snapshots := filepath.Dir(path); filepath.Base(snapshots) == "snapshots" {
		repository, ok := strings.CutPrefix(filepath.Base(filepath.Dir(snapshots)), "models--")
		if ok {
			return strings.Replace(repository, "--", "/", 1)
		}
	}
	return filepath.Base(path)
}

// describeFile says what a path leads to that should be a folder.
func describeFile(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return "a file"
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := f.ReadAt(head, 0)
	if what := identify(string(head[:n])); what != "" {
		return what
	}
	if filepath.Ext(path) == ".safetensors" {
		return "a single safetensors file"
	}
	return "a file"
}

func (d dir) Open(name string) (File, error) {
	if name != filepath.Base(name) || !filepath.IsLocal(name) {
		return nil, fmt.Errorf("%s is no plain file name", quote(name))
	}
	path := filepath.Join(string(d), name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(path); err == nil {
			return nil, errors.New("a link to a file that is not there: an incomplete download")
		}
		return nil, fs.ErrNotExist
	}
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, errors.New("a folder, want a file")
	}
	// A pipe or a device would make us wait for its writer.
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%v, want a file", info.Mode().Type())
	}
	return openDisk(path)
}

// openDisk opens and maps a file.
func openDisk(path string) (File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	data, err := mapFile(f, info.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("map %d bytes: %w", info.Size(), err)
	}
	noCache(f)
	return &diskFile{File: f, size: info.Size(), data: data}, nil
}

// diskFile is an open file and its mapping. Reading a mapped byte of a file that
// has been cut since ends the process, so what may fail is read with ReadAt.
type diskFile struct {
	*os.File
	size int64
	data []byte
}

func (f *diskFile) Size() int64   { return f.size }
func (f *diskFile) Bytes() []byte { return f.data }

func (f *diskFile) Close() error {
	err := unmapFile(f.data)
	f.data = nil
	return errors.Join(err, f.File.Close())
}
