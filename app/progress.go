package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"calla/core/engine"
	"calla/core/model"
)

// progress shows how far loading is: on a terminal a line that changes,
// elsewhere a line every few seconds.
type progress struct {
	out   io.Writer
	every time.Duration
	end   string // what ends an unfinished line

	mu   sync.Mutex
	last time.Time
}

func newProgress(out io.Writer) *progress {
	p := &progress{out: out, every: 5 * time.Second, end: "\n"}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		p.every, p.end = 100*time.Millisecond, "\r"
	}
	return p
}

func (p *progress) show(done, total int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if total <= 0 || now.Sub(p.last) < p.every && done < total {
		return
	}
	p.last = now
	end := p.end
	if done >= total {
		end = "\n"
	}
	fmt.Fprintf(p.out, "loading %3d %% of %s%s", done*100/total, bytesText(total), end)
}

// withProgress shows each load of the model.
func withProgress(load engine.Loader, p *progress) engine.Loader {
	return func(ctx context.Context, tell func(done, total int64)) (*model.Model, func() error, error) {
		return load(ctx, func(done, total int64) {
			p.show(done, total)
			tell(done, total)
		})
	}
}

// bytesText writes a size for people.
func bytesText(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.0f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", n)
}
