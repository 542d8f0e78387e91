package main

import (
	"fmt"
	"os"
	"sync"
)

// maxLog is how large a log grows before a new one begins, keptLogs how many
// there are then, the new one included.
const (
	maxLog   = 10 << 20
	keptLogs = 3
)

// logFile is a log that begins anew when it is full. Older ones stand beside it
// as path.1, the newest of them, and path.2. They are readable by their owner
// alone.
type logFile struct {
	path string
	max  int64

	mu   sync.Mutex
	file *os.File
	size int64
}

// openLog opens a log in a folder that is there.
func openLog(path string) (*logFile, error) {
	l := &logFile{path: path, max: maxLog}
	if err := l.open(); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return fmt.Errorf("log: %w", err)
	}
	l.file, l.size = f, info.Size()
	return nil
}

// Write adds a whole entry; entries are never cut in two.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(p)) > l.max && l.size > 0 {
		if err := l.turn(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// turn moves each log one place on, the oldest out, and begins a new one.
func (l *logFile) turn() error {
	for n := keptLogs - 1; n > 0; n-- {
		if err := os.Rename(l.place(n-1), l.place(n)); err != nil && !os.IsNotExist(err) {
			return fmt.Errorf("log: %w", err)
		}
	}
	old := l.file
	if err := l.open(); err != nil {
		return err
	}
	return old.Close()
}

// place names the log that is n logs old.
func (l *logFile) place(n int) string {
	if n == 0 {
		return l.path
	}
	return fmt.Sprintf("%s.%d", l.path, n)
}

func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
