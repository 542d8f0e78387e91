//go:build !linux && !darwin

package download

import (
	"errors"
	"fmt"
	"io/fs"
)

func inode(fs.FileInfo) uint64 { return 0 }

func links(fs.FileInfo) int { return 1 }

func freeBytes(string) (int64, error) { return 0, errors.ErrUnsupported }

// lockFolder refuses: without a lock that ends with its process two pulls could
// write to one file.
func lockFolder(folder string) (release func(), err error) {
	return nil, fmt.Errorf("lock %s: %w on this system", folder, errors.ErrUnsupported)
}

func syncFolder(string) error { return nil }

func diskFull(error) bool { return false }
