//go:build linux || darwin

package download

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

func inode(info fs.FileInfo) uint64 {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0
	}
	return s.Ino
}

// links returns by how many names a file can be reached.
func links(info fs.FileInfo) int {
	s, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return int(s.Nlink)
}

// freeBytes returns how much a person without special rights can still write to
// the disk that a folder lies on.
func freeBytes(folder string) (int64, error) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(folder, &s); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", folder, err)
	}
	return int64(s.Bavail) * blockSize(&s), nil
}

// lockFolder takes the lock of a folder, which ends with the process whatever
// ends it. The lock lies on the folder itself, so nothing is written.
func lockFolder(folder string) (release func(), err error) {
	f, err := os.Open(folder)
	if err != nil {
		return nil, err
	}
	err = ignoreEINTR(func() error { return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) })
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrBusy
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", folder, err)
	}
	return func() { f.Close() }, nil
}

func ignoreEINTR(call func() error) error {
	for {
		if err := call(); err != syscall.EINTR {
			return err
		}
	}
}

// syncFolder makes the names in a folder outlive a loss of power. Some file
// systems can't be asked for it.
func syncFolder(folder string) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EINVAL) {
		return err
	}
	return nil
}

// diskFull says whether a write failed for want of space.
func diskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
