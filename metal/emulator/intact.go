//go:build darwin || freebsd || linux

package emulator

import (
	"debug/elf"
	"fmt"
	"os"
	"runtime"
)

// intact says why a file is no whole library. The system's loader waits for one
// that is a pipe, and dies of one that ends before its parts do; a Mac's looks
// itself.
func intact(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file with a library", path)
	}
	if runtime.GOOS == "darwin" {
		return nil
	}
	f, err := elf.Open(path)
	if err != nil {
		return fmt.Errorf("%s is no whole library: %w", path, err)
	}
	defer f.Close()
	size := uint64(info.Size())
	whole := true
	within := func(offset, bytes uint64) { whole = whole && bytes <= size && offset <= size-bytes }
	for _, p := range f.Progs {
		within(p.Off, p.Filesz)
	}
	for _, s := range f.Sections {
		if s.Type != elf.SHT_NOBITS {
			within(s.Offset, s.FileSize)
		}
	}
	if !whole {
		return fmt.Errorf("%s is no whole library: it ends after %d bytes, before its parts do", path, size)
	}
	return nil
}
