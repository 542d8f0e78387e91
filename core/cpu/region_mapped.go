//go:build (linux || darwin) && !race

package cpu

import (
	"fmt"
	"syscall"
)

func reserve(size int) ([]byte, error) {
	b, err := syscall.Mmap(-1, 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("cpu: reserve %d bytes: %w", size, err)
	}
	return b, nil
}

func release(b []byte) error {
	if err := syscall.Munmap(b); err != nil {
		return fmt.Errorf("cpu: release %d bytes: %w", len(b), err)
	}
	return nil
}
