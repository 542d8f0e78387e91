package supervise

import (
	"bytes"
	"io"
	"strings"
	"sync"
)

// The bounds of a tail.
const (
	tailLines = 200
	tailWidth = 400
)

// tail passes a log on and keeps its last lines.
type tail struct {
	log io.Writer

	mu    sync.Mutex
	lines []string
	part  []byte // of a line without its end
}

// Write never fails: a log that can't be written must not end the child.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.log.Write(p)
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		t.part = append(t.part, line[:min(len(line), tailWidth-min(len(t.part), tailWidth))]...)
		if rest = after; whole {
			t.keep(strings.TrimSpace(string(t.part)))
			t.part = t.part[:0]
		}
	}
	return len(p), nil
}

func (t *tail) keep(line string) {
	if line == "" {
		return
	}
	if len(t.lines) == tailLines {
		t.lines = append(t.lines[:0], t.lines[1:]...)
	}
	t.lines = append(t.lines, line)
}

// reason is the line that says best why the process ended: that of a panic,
// whose trace follows it, or else the last.
func (t *tail) reason() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	if last := strings.TrimSpace(string(t.part)); last != "" {
		lines = append(lines, last)
	}
	for _, l := range lines {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return l
		}
	}
	if len(lines) == 0 {
		return ""
	}
	return strings.TrimPrefix(lines[len(lines)-1], "calla: ")
}
