package download

import "syscall"

// blockSize returns the unit of s's counts of blocks, which is not Bsize where
// that is what the file system likes to transfer.
func blockSize(s *syscall.Statfs_t) int64 {
	if s.Frsize > 0 {
		return s.Frsize
	}
	return s.Bsize
}
