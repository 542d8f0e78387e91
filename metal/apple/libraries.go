package apple

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"calla/metal"
	"calla/shaders"
)

// group is sources that make one library of a release.
type group struct {
	library  string // its file there
	prefix   string // of the sources' names
	language uint32 // version of Metal's language: major << 16 + minor
}

var (
	// plainSources need bfloat, which came with macOS 14.
	plainSources = group{"calla.metallib", "", 3<<16 + 1}
	// tensorSources need the tensor operations of Metal 4, which came with macOS 26.
	tensorSources = group{"calla-tensor.metallib", "tensor_", 4 << 16}
)

// sources returns the names of a group's sources.
func (g group) sources() []string {
	var out []string
	for _, name := range shaders.Names() {
		if tensor := strings.HasPrefix(name, tensorSources.prefix); tensor == (g == tensorSources) {
			out = append(out, name)
		}
	}
	return out
}

// libraries finds the library of each kernel.
type libraries struct {
	mu      sync.Mutex
	handles []handle
	of      map[string]handle // by function
	opened  map[group]bool
}

// open makes the libraries of a group: a release's, or one of each source.
func (s *libraries) open(d *Driver, g group) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.opened[g] {
		return nil
	}
	if s.of == nil {
		s.of, s.opened = map[string]handle{}, map[group]bool{}
	}
	handles, err := brought(d, g), error(nil)
	if handles == nil {
		handles, err = compileAll(d, g)
	}
	s.handles = append(s.handles, handles...)
	if err != nil {
		return err
	}
	for _, h := range handles {
		for _, f := range d.gpu.functions(h) {
			s.of[f] = h
		}
	}
	s.opened[g] = true
	return nil
}

func (s *libraries) close(g gpu) {
	for _, h := range s.handles {
		g.release(h)
	}
	s.handles = nil
}

// brought loads the library that a release brings. That none is there, or none
// that this system loads, is no error: the sources are here.
func brought(d *Driver, g group) []handle {
	if d.options.Libraries == "" {
		return nil
	}
	path := filepath.Join(d.options.Libraries, g.library)
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	h, err := d.gpu.load(d.handles.device, path)
	if err != nil {
		return nil
	}
	return []handle{h}
}

// compileAll compiles sources side by side, each to a library of its own. With an
// error it returns the libraries that there are.
func compileAll(d *Driver, g group) ([]handle, error) {
	names := g.sources()
	made, errs := make([]handle, len(names)), make([]error, len(names))
	var work sync.WaitGroup
	for i, name := range names {
		work.Go(func() { made[i], errs[i] = compile(d, name, g.language) })
	}
	work.Wait()
	var out []handle
	for _, h := range made {
		if h != 0 {
			out = append(out, h)
		}
	}
	return out, errors.Join(errs...)
}

func compile(d *Driver, name string, language uint32) (handle, error) {
	src, err := shaders.Source(name)
	if err != nil {
		return 0, err
	}
	// The compiler calls a line by the file that the last #line names.
	h, err := d.gpu.compile(d.handles.device, fmt.Sprintf("#line 1 %q\n%s", name, src), language)
	if err != nil {
		return 0, fmt.Errorf("metal: %s does not compile: %w", blame(name, err.Error()), err)
	}
	return h, nil
}

// library returns where a kernel is.
func (s *libraries) library(k metal.Kernel) (handle, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h, ok := s.of[k.Name]
	if !ok {
		return 0, fmt.Errorf("metal: no source has a kernel %s", k.Name)
	}
	return h, nil
}
