package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// noCache asks that the system keep no copy of what is read of a file: who reads
// weights keeps them, and a second copy of 20 GB would drive out everything else.
// Mappings are not touched. Where the file system can't, reading works all the same.
func noCache(f *os.File) {
	unix.FcntlInt(f.Fd(), unix.F_NOCACHE, 1)
}
