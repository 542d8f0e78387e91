package apple

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"calla/metal"
	"calla/shaders"
)

// archive keeps compiled pipelines from one start to the next. It only saves time:
// whatever goes wrong with it, it is dropped and made anew.
type archive struct {
	opened bool
	handle handle // what was found, 0 where nothing usable was
	saving sync.WaitGroup
}

const archiveSuffix = ".pipelines"

// path returns the archive's file, or nothing where none is to be kept. Its name
// tells sources, system and device apart.
func (a *archive) path(d *Driver) string {
	if d.options.Cache == "" {
		return ""
	}
	sum := sha256.New()
	err := fs.WalkDir(shaders.Files(), ".", func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		content, err := fs.ReadFile(shaders.Files(), path)
		fmt.Fprintf(sum, "%s %d\n%s", path, len(content), content)
		return err
	})
	if err != nil {
		return ""
	}
	fmt.Fprintf(sum, "%s\n%s\n%d\n", d.facts.Build, d.facts.Name, d.facts.Family)
	return filepath.Join(d.options.Cache, fmt.Sprintf("%.16x%s", sum.Sum(nil), archiveSuffix))
}

// open opens the archive of earlier starts, once.
func (a *archive) open(d *Driver) {
	path := a.path(d)
	if a.opened || path == "" {
		return
	}
	a.opened = true
	if _, err := os.Stat(path); err != nil {
		return
	}
	var err error
	if a.handle, err = d.gpu.archive(d.handles.device, path); err != nil {
		os.Remove(path)
	}
}

// save writes an archive of all pipelines, beside what else goes on. To fill one
// compiles each kernel again, which must not hold up the start.
func (a *archive) save(d *Driver) {
	path := a.path(d)
	if path == "" {
		return
	}
	kernels := make([]metal.Kernel, 0, len(d.pipelines))
	for k := range d.pipelines {
		kernels = append(kernels, k)
	}
	specs, err := d.specs(kernels)
	if err != nil {
		return
	}
	a.saving.Wait()
	a.saving.Go(func() {
		if writeArchive(d, path, kernels, specs) != nil {
			os.Remove(path)
			return
		}
		forgetOthers(path)
	})
}

// writeArchive fills an archive and puts it in its place as a whole.
func writeArchive(d *Driver, path string, kernels []metal.Kernel, specs []pipelineSpec) error {
	h, err := d.gpu.archive(d.handles.device, "")
	if err != nil {
		return err
	}
	defer d.gpu.release(h)
	for i, k := range kernels {
		spec := specs[i]
		spec.Archive, spec.Add = h, 1
		p, err := d.gpu.pipeline(d.handles.device, k.Name, &spec)
		if err != nil {
			return err
		}
		d.gpu.release(p)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	part := path + ".part"
	defer os.Remove(part)
	if err := d.gpu.save(h, part); err != nil {
		return err
	}
	return os.Rename(part, path)
}

// forgetOthers removes the archives of other sources and systems.
func forgetOthers(path string) {
	others, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"+archiveSuffix))
	if err != nil {
		return
	}
	for _, o := range others {
		if o != path {
			os.Remove(o)
		}
	}
}
