package apple

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"

	"calla/metal"
)

// simdWidth is how many lanes a simdgroup has, which the kernels count on.
const simdWidth = 32

// pipeline is a kernel that is ready.
type pipeline struct {
	handle  handle
	threads uint32 // most of a threadgroup
}

// Prepare implements metal.Driver.
func (d *Driver) Prepare(kernels []metal.Kernel) error {
	d.order.Lock()
	defer d.order.Unlock()
	if d.closed {
		return errClosed
	}
	wanted, err := d.missing(kernels)
	if err != nil || len(wanted) == 0 {
		return err
	}
	specs, err := d.specs(wanted)
	if err != nil {
		return err
	}
	d.archive.open(d)
	made, compiled, err := d.make(wanted, specs)
	for k, p := range made {
		d.pipelines[k] = p
	}
	if err != nil {
		return err
	}
	if compiled {
		d.archive.save(d)
	}
	return nil
}

// missing returns the kernels that are not ready, each once, and opens the
// libraries that they are in.
func (d *Driver) missing(kernels []metal.Kernel) ([]metal.Kernel, error) {
	var out []metal.Kernel
	seen := map[metal.Kernel]bool{}
	for _, k := range kernels {
		if _, ok := d.pipelines[k]; ok || seen[k] {
			continue
		}
		seen[k] = true
		out = append(out, k)
		g := plainSources
		if strings.HasPrefix(k.Name, tensorSources.prefix) {
			if g = tensorSources; !d.MatrixUnits() {
				return nil, fmt.Errorf("metal: kernel %v needs matrix units, and %s has none that can be used", k, d.facts.Name)
			}
		}
		if err := d.libraries.open(d, g); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (d *Driver) specs(kernels []metal.Kernel) ([]pipelineSpec, error) {
	out := make([]pipelineSpec, len(kernels))
	for i, k := range kernels {
		h, err := d.libraries.library(k)
		if err != nil {
			return nil, err
		}
		out[i] = pipelineSpec{Library: h, Constants: k.Constants}
	}
	return out, nil
}

// make makes pipelines side by side: from the archive where that has them, and
// compiled where not. It returns those that it made beside an error too.
func (d *Driver) make(kernels []metal.Kernel, specs []pipelineSpec) (made map[metal.Kernel]pipeline, compiled bool, err error) {
	var mu sync.Mutex
	var errs []error
	made = map[metal.Kernel]pipeline{}
	var work sync.WaitGroup
	turn := make(chan struct{}, runtime.GOMAXPROCS(0))
	for i, k := range kernels {
		work.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			p, archived, err := d.makeOne(k, specs[i])
			mu.Lock()
			defer mu.Unlock()
			compiled = compiled || !archived
			if err != nil {
				errs = append(errs, err)
			} else {
				made[k] = p
			}
		})
	}
	work.Wait()
	return made, compiled, errors.Join(errs...)
}

func (d *Driver) makeOne(k metal.Kernel, spec pipelineSpec) (p pipeline, archived bool, err error) {
	if a := d.archive.handle; a != 0 {
		found := spec
		found.Archive, found.ArchivedOnly = a, 1
		if h, err := d.gpu.pipeline(d.handles.device, k.Name, &found); err == nil {
			p, err := d.fit(k, h, found)
			return p, true, err
		}
	}
	h, err := d.gpu.pipeline(d.handles.device, k.Name, &spec)
	if err != nil {
		return pipeline{}, false, fmt.Errorf("metal: kernel %v does not compile for %s: %w", k, d.facts.Name, err)
	}
	p, err = d.fit(k, h, spec)
	return p, false, err
}

// fit says whether a pipeline is as the kernels count on.
func (d *Driver) fit(k metal.Kernel, h handle, spec pipelineSpec) (pipeline, error) {
	if spec.SIMDWidth != simdWidth {
		d.gpu.release(h)
		return pipeline{}, fmt.Errorf("metal: kernel %v has simdgroups of %d lanes on %s, want %d", k, spec.SIMDWidth, d.facts.Name, simdWidth)
	}
	return pipeline{h, spec.MostThreads}, nil
}
