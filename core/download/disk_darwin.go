package download

import "syscall"

// blockSize returns the unit of s's counts of blocks.
func blockSize(s *syscall.Statfs_t) int64 { return int64(s.Bsize) }
