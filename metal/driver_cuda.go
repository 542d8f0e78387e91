//go:build linux

package metal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"calla/metal/cuda"
)

// CUDA runs lists on an NVIDIA GPU: the same kernels, compiled to PTX. One queue
// runs dispatches in turn, so that barriers need nothing.
type CUDA struct {
	gpu     *cuda.Device
	sources map[string]*cuda.Source // by kernel
	loaded  map[Kernel]*cuda.Function
	// Careful waits for each dispatch, so that an error names the one at fault.
	Careful bool
}

var _ Private = (*CUDA)(nil)

// OpenCUDA starts the first GPU, with the kernels that scripts/emulator --cuda
// has put in a folder.
func OpenCUDA(dir string) (*CUDA, error) {
	sources, err := readPTX(dir)
	if err != nil {
		return nil, err
	}
	gpu, err := cuda.Open()
	if err != nil {
		return nil, err
	}
	return &CUDA{gpu: gpu, sources: sources, loaded: map[Kernel]*cuda.Function{}}, nil
}

// readPTX returns the sources of a folder by kernel.
func readPTX(dir string) (map[string]*cuda.Source, error) {
	paths, err := listPTX(dir)
	if err != nil {
		return nil, err
	}
	sources := map[string]*cuda.Source{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("metal: kernels for NVIDIA GPUs: %w", err)
		}
		s, err := cuda.Parse(string(b))
		if err != nil {
			return nil, fmt.Errorf("metal: %s: %w", path, err)
		}
		for _, k := range s.Kernels() {
			sources[k] = s
		}
	}
	return sources, nil
}

// listPTX returns the files of kernels in a folder, by their whole path: whoever
// looked in the wrong one is told which.
func listPTX(dir string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("metal: kernels for NVIDIA GPUs: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("metal: kernels for NVIDIA GPUs: %w", err)
	}
	var paths []string
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && filepath.Ext(path) == ".ptx" {
			paths = append(paths, path)
		}
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("metal: %s: no kernels for NVIDIA GPUs: scripts/emulator --cuda makes them: %w", dir, fs.ErrNotExist)
	}
	return paths, nil
}

// Name implements Driver.
func (d *CUDA) Name() string { return d.gpu.Name() }

// Memory implements Driver.
func (d *CUDA) Memory() (budget, total int64) {
	free, total, err := d.gpu.Memory()
	if err != nil {
		return 0, 0
	}
	return free, total
}

// MaxBuffer implements Driver: kernels reckon within a buffer as on Apple's GPUs.
func (d *CUDA) MaxBuffer() int64 { return 4 << 30 }

// MatrixUnits implements Driver: PTX has no words for Metal 4's.
func (d *CUDA) MatrixUnits() bool { return false }

// Prepare implements Driver. Kernels are compiled several at once.
func (d *CUDA) Prepare(kernels []Kernel) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var failed error
	for _, k := range kernels {
		if d.loaded[k] != nil {
			continue
		}
		source := d.sources[k.Name]
		if source == nil {
			return fmt.Errorf("metal: no kernel %s for NVIDIA GPUs: scripts/emulator --cuda makes them", k.Name)
		}
		wg.Go(func() {
			f, err := d.gpu.Load(source, k.Name, k.Constants)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failed = errors.Join(failed, fmt.Errorf("metal: %v: %w", k, err))
				return
			}
			d.loaded[k] = f
		})
	}
	wg.Wait()
	return failed
}

// gpuMemory is the Native of a buffer.
type gpuMemory struct{ at cuda.Pointer }

func (b Binding) gpu() cuda.Pointer {
	return b.Buffer.Native.(gpuMemory).at + cuda.Pointer(b.Offset)
}

// NewBuffer implements Driver: memory of the machine, which the GPU reaches.
func (d *CUDA) NewBuffer(name string, bytes int64) (*Buffer, error) {
	memory, at, err := d.gpu.AllocShared(bytes)
	if err != nil {
		return nil, fmt.Errorf("metal: buffer %s: %w", name, err)
	}
	for i := range memory {
		memory[i] = 0xff
	}
	return &Buffer{Name: name, Size: bytes, Bytes: memory, Native: gpuMemory{at}}, nil
}

// Unified implements Private.
func (d *CUDA) Unified() bool { return false }

// NewPrivate implements Private: memory of the GPU.
func (d *CUDA) NewPrivate(name string, bytes int64) (*Buffer, error) {
	at, err := d.gpu.Alloc(bytes)
	if err != nil {
		return nil, fmt.Errorf("metal: buffer %s: %w", name, err)
	}
	if err := d.gpu.Fill(at, 0xff, bytes); err != nil { // not zero, and not a number
		d.gpu.Free(at)
		return nil, fmt.Errorf("metal: buffer %s: %w", name, err)
	}
	return &Buffer{Name: name, Size: bytes, Native: gpuMemory{at}}, nil
}

// Free implements Driver.
func (d *CUDA) Free(b *Buffer) {
	if b.Bytes != nil {
		d.gpu.FreeShared(b.Bytes)
		b.Bytes = nil
		return
	}
	d.gpu.Free(b.Native.(gpuMemory).at)
}

// Write implements Private.
func (d *CUDA) Write(to Binding, from []byte) error { return d.gpu.Write(to.gpu(), from) }

// Read implements Private.
func (d *CUDA) Read(to []byte, from Binding) error { return d.gpu.Read(to, from.gpu()) }

// Copy implements Private.
func (d *CUDA) Copy(to, from Binding, bytes int64) error {
	return d.gpu.Copy(to.gpu(), from.gpu(), bytes)
}

// Clear implements Private.
func (d *CUDA) Clear(to Binding, bytes int64) error { return d.gpu.Fill(to.gpu(), 0, bytes) }

// Commit implements Driver.
func (d *CUDA) Commit(l *List) (Completion, error) {
	for i := range l.Dispatches {
		x := &l.Dispatches[i]
		err := d.launch(x)
		if err == nil && d.Careful {
			err = d.wait()
		}
		if err != nil {
			return nil, fmt.Errorf("metal: dispatch %d of %d: %v: %w", i, len(l.Dispatches), x.Kernel, err)
		}
	}
	event, err := d.gpu.Record()
	if err != nil {
		return nil, fmt.Errorf("metal: %d dispatches: %w", len(l.Dispatches), err)
	}
	return &running{event, len(l.Dispatches)}, nil
}

// launch puts one dispatch on the queue.
func (d *CUDA) launch(x *Dispatch) error {
	if err := x.Check(); err != nil {
		return err
	}
	f := d.loaded[x.Kernel]
	if f == nil {
		return errors.New("the kernel was not prepared")
	}
	pointers := make([]cuda.Pointer, len(x.Buffers))
	for i, b := range x.Buffers {
		pointers[i] = b.gpu()
	}
	return d.gpu.Launch(f, x.Grid, x.Threads, x.Shared, x.Args, pointers)
}

// wait waits for all that was launched.
func (d *CUDA) wait() error {
	event, err := d.gpu.Record()
	if err != nil {
		return err
	}
	return (&running{event, 0}).Wait()
}

// Close implements Driver.
func (d *CUDA) Close() error { return d.gpu.Close() }

// running is a list on the GPU.
type running struct {
	event      *cuda.Event
	dispatches int
}

// Wait implements Completion. Which dispatch was at fault the GPU does not tell.
func (r *running) Wait() error {
	err := r.event.Wait()
	r.event.Free()
	if err != nil {
		return fmt.Errorf("metal: one of %d dispatches: %w", r.dispatches, err)
	}
	return nil
}
