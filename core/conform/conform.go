// Package conform holds what every backend must show: tables of cases for its
// operations, values of a whole model from another implementation, and the
// promises that hold to the bit. A backend's own tests call the suites with a
// Subject and an Ops of theirs.
//
// Nothing here is written after the code it judges: expected values come from
// mlx-lm (testdata) or from the formula, in float64, in this package.
package conform

import (
	"context"
	"embed"
	"io/fs"
	"path"
	"testing"

	"calla/core/backend"
	"calla/core/checkpoint"
	"calla/core/model"
)

// Observe is shown the values inside a call, as they are made: rows of width
// values under a name, of one layer, -1 for the whole model's.
type Observe func(layer int, name string, width int, values []float32)

// Subject is the backend under test.
type Subject struct {
	// New makes a device as the product runs it. observe may be nil.
	New func(t testing.TB, observe Observe) backend.Device
	// Precise makes a device that rounds nothing to bfloat16; nil where the
	// backend has none.
	Precise func(t testing.TB, observe Observe) backend.Device
	// Variants are devices that must give the bits that New's gives: of other
	// numbers of threads, of other schedules.
	Variants map[string]func(t testing.TB) backend.Device
	// Slow says that a row takes seconds at real dimensions. Slice then keeps to
	// the real vocabulary, the prompt's prefill and a single step.
	Slow bool
}

// Inspector is what a state under test offers besides backend.State: copies of
// its contents.
type Inspector interface {
	Recurrent(layer int) []float32 // [value heads, value dim, key dim]
	Conv(layer int) []float32      // [taps-1, channels], the oldest row first
	Keys(layer int) []float32      // [KV heads, tokens, head dim]
	Values(layer int) []float32    // the same
}

//go:embed testdata/tiny testdata/slice
var testdata embed.FS

// readFolder returns the files of a folder of testdata, by name.
func readFolder(t testing.TB, dir string) map[string][]byte {
	t.Helper()
	entries, err := fs.ReadDir(testdata, dir)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		if files[e.Name()], err = fs.ReadFile(testdata, path.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// Tiny returns the fixture testdata/tiny.
func Tiny(t testing.TB) checkpoint.Source {
	return checkpoint.Memory("tiny", readFolder(t, "testdata/tiny"))
}

// Load loads a checkpoint of any size for the length of the test, and closes
// the device with it.
func Load(t testing.TB, dev backend.Device, src checkpoint.Source) *model.Model {
	t.Helper()
	return LoadTokens(t, dev, src, 0)
}

// LoadTokens is Load for a checkpoint of which only the first rows of the
// vocabulary are tokens.
func LoadTokens(t testing.TB, dev backend.Device, src checkpoint.Source, tokens int) *model.Model {
	t.Helper()
	c, err := checkpoint.Open(src, checkpoint.Options{AnySize: true})
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.Load(context.Background(), dev, c, tokens, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, closer := range []interface{ Close() error }{m, dev, c} {
			if err := closer.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return m
}

// newState makes a state for the length of the test.
func newState(t testing.TB, m *model.Model, tokens int) backend.State {
	t.Helper()
	s, err := m.NewState(tokens)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
