package engine

import (
	"fmt"
	"path"
	"runtime"
	"strings"
)

// crash says that code panicked, and where. What was panicked with and the
// arguments in Go's own stack traces may hold tokens of people, so it keeps
// neither.
type crash struct {
	kind   string   // Go's type of what was panicked with
	frames []string // innermost first
}

func (c *crash) Error() string {
	at := "an unknown place"
	if len(c.frames) > 0 {
		at = c.frames[0]
	}
	return fmt.Sprintf("panic (%s) in %s", c.kind, at)
}

// guard turns a panic into a *DeviceError: one bad step must not end the
// process.
func (w *worker) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c := &crash{fmt.Sprintf("%T", p), panicFrames()}
			w.o.Log.Error("engine: "+c.Error(), "stack", c.frames)
			err = &DeviceError{c}
		}
	}()
	return f()
}

// panicFrames returns the functions that a panic came through, to be called
// where it is recovered.
func panicFrames() []string {
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
