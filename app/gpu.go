package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"calla/core/backend"
	"calla/metal"
	"calla/metal/apple"
)

// gpuCallTime is how long a prompt's piece may take on a GPU: as long as one that
// was cancelled is still worked on. The driver cuts what it sends in shorter ones.
const gpuCallTime = 2 * time.Second

// openApple starts this Mac's GPU.
func openApple() (metal.Driver, error) {
	d, err := apple.Open(apple.Options{Libraries: bundledLibraries(), Cache: pipelineCache()})
	if err != nil {
		return nil, fmt.Errorf("backend metal: %w", err)
	}
	return d, nil
}

// openMetal returns this Mac's GPU as a device.
func openMetal() (backend.Device, error) {
	d, err := openApple()
	if err != nil {
		return nil, err
	}
	return metal.New(d, metal.Options{CallTime: gpuCallTime}), nil
}

// best returns the device of --backend auto: a Mac's GPU, or else the processor.
func best() (backend.Device, bool) {
	if runtime.GOOS != "darwin" {
		return nil, false
	}
	d, err := openMetal()
	return d, err == nil
}

// bundledLibraries is where Calla.app has its compiled kernels, or nothing where
// the program is not in a bundle.
func bundledLibraries() string {
	program, err := os.Executable()
	if err != nil {
		return ""
	}
	if program, err = filepath.EvalSymlinks(program); err != nil {
		return ""
	}
	folder := filepath.Dir(program)
	if filepath.Base(folder) != "MacOS" {
		return ""
	}
	return filepath.Join(filepath.Dir(folder), "Resources")
}

// pipelineCache is where compiled kernels stay from one start to the next.
func pipelineCache() string {
	folder, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(folder, "Calla", "pipelines")
}
