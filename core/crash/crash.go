// Package crash says of a panic where it happened, and nothing that could hold
// tokens or text of people: what was panicked with and the arguments in Go's
// own stack traces may.
package crash

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// Crash is a panic that was recovered from.
type Crash struct {
	Kind   string   // Go's type of what was panicked with
	Frames []string // functions and lines, innermost first
}

// Of describes the panic that recover returned p for. It is to be called in
// the deferred function that recovered.
func Of(p any) *Crash { return &Crash{fmt.Sprintf("%T", p), frames()} }

func (c *Crash) Error() string {
	at := "an unknown place"
	if len(c.Frames) > 0 {
		at = c.Frames[0]
	}
	return fmt.Sprintf("panic (%s) in %s", c.Kind, at)
}

// frames returns the functions that the panic came through.
func frames() []string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	var out []string
	panicked := false
	for {
		f, more := frames.Next()
		switch inRuntime := strings.HasPrefix(f.Function, "runtime."); {
		case inRuntime:
			panicked = panicked || strings.HasPrefix(f.Function, "runtime.gopanic")
		case panicked:
			out = append(out, fmt.Sprintf("%s (%s:%d)", path.Base(f.Function), path.Base(f.File), f.Line))
		}
		if !more {
			return out
		}
	}
}
