// Package whole writes files that are there with all of their content or not at
// all: a full disk or a program that is stopped leaves what was there before.
package whole

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// Write gives a file the content that fill writes, in place of what it had. The
// content is written beside the file, on the disk, and then gets its name. A link
// stays one and leads to the new content; what is no file, such as /dev/stdout, is
// written to as it is.
func Write(path string, mode fs.FileMode, fill func(io.Writer) error) error {
	to, plain, err := target(path)
	if err != nil {
		return failed(path, err)
	}
	if !plain {
		f, err := os.OpenFile(to, os.O_WRONLY, 0)
		if err != nil {
			return failed(path, err)
		}
		return failed(path, errors.Join(fill(f), f.Close()))
	}
	f, err := beside(to, mode)
	if err != nil {
		return failed(path, err)
	}
	defer os.Remove(f.Name()) // no longer there where all went well
	if err := errors.Join(fill(f), f.Sync(), f.Close()); err != nil {
		return failed(path, err)
	}
	return failed(path, os.Rename(f.Name(), to))
}

// WriteText is Write of a text.
func WriteText(path string, mode fs.FileMode, text string) error {
	return Write(path, mode, func(w io.Writer) error {
		_, err := io.WriteString(w, text)
		return err
	})
}

// Check says why Write could not write a file, for those who would rather know
// before long work. What is there stays.
func Check(path string) error {
	to, plain, err := target(path)
	if err != nil || !plain {
		return failed(path, err)
	}
	f, err := beside(to, 0o600)
	if err != nil {
		return failed(path, err)
	}
	return failed(path, errors.Join(f.Close(), os.Remove(f.Name())))
}

// target follows links to what is to be written, and says whether it is a plain
// file or none yet.
func target(path string) (to string, plain bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return path, true, nil
	case err != nil:
		return "", false, err
	case info.IsDir():
		return "", false, syscall.EISDIR
	}
	to, err = filepath.EvalSymlinks(path)
	return to, info.Mode().IsRegular(), err
}

// beside opens a new file in the folder of another.
func beside(path string, mode fs.FileMode) (*os.File, error) {
	name := filepath.Join(filepath.Dir(path), ".calla-"+rand.Text())
	return os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
}

// failed names the file that was meant, and not the one beside it.
func failed(path string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	}
	return &fs.PathError{Op: "write", Path: path, Err: err}
}
