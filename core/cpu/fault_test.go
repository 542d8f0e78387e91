package cpu_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"calla/core/checkpoint"
	"calla/core/conform"
	"calla/core/cpu"
)

// A shard that shrinks under a running model ends the call with an error, also
// where a goroutine of the pool meets it, and not the process.
func TestShrunkenShardIsAnError(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a mapped file can't be truncated")
	}
	for _, threads := range []int{1, 3} {
		dir := t.TempDir()
		if err := os.CopyFS(dir, os.DirFS("../conform/testdata/tiny")); err != nil {
			t.Fatal(err)
		}
		m := conform.Load(t, cpu.New(cpu.Options{Threads: threads}), checkpoint.Dir(dir))
		s, err := m.NewState(64)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if _, err := m.Prefill(s, []int32{1, 2, 3}, []int{0}, true); err != nil {
			t.Fatal(err)
		}
		for _, shard := range []string{"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"} {
			if err := os.Truncate(filepath.Join(dir, shard), 100); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := m.Decode(s, 1); err == nil || !strings.Contains(err.Error(), "weight") {
			t.Fatalf("%d threads: decode says %v, want an error about a weight", threads, err)
		}
		if _, err := m.Decode(s, 1); err == nil {
			t.Error("a broken state went on")
		}
	}
}
