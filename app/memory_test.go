package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"calla/core/backend"
	"calla/core/cpu"
	"calla/core/engine"
	"calla/core/model"
)

// memoryCase is what a process of its own is to measure.
type memoryCase struct {
	Model  string
	MaxSeq int
}

// memoryFound is what it measured, in bytes.
type memoryFound struct {
	Form                int64 // the closed form, weights left out
	Mapped              int64 // of the weights
	Anonymous, Resident int64 // peaks
	States, Snapshots   int64 // in the cache, at the end
}

// memoryVariable asks this test binary, started again, to measure one case.
const memoryVariable = "CALLA_TEST_MEMORY"

// TestMemoryStaysWithinTheForm runs an engine whose cache is as full as it can
// be, in a process of its own, and compares its anonymous memory with the
// closed form.
func TestMemoryStaysWithinTheForm(t *testing.T) {
	if runtime.GOOS != "linux" || raceDetector {
		t.Skip("it reads Linux's /proc, and the race detector's memory is no measure")
	}
	slice := os.Getenv("CALLA_SLICE")
	for _, c := range []memoryCase{
		{"demo", 1 << 10}, {"demo", 4 << 10}, {"demo", 8 << 10},
		{slice, 1 << 10}, {slice, 16 << 10}, {slice, 64 << 10},
	} {
		name := "demo"
		if c.Model == slice {
			name = "a slice of the real dimensions"
		}
		t.Run(fmt.Sprintf("%s/%d", name, c.MaxSeq), func(t *testing.T) {
			if c.Model == "" {
				t.Skip("CALLA_SLICE is not set; scripts/test makes one")
			}
			m := measureApart(t, c)
			t.Logf("form %s, anonymous %s (%+.1f %%), mapped weights %s, resident %s; %d states and %d snapshots",
				bytesText(m.Form), bytesText(m.Anonymous), 100*float64(m.Anonymous-m.Form)/float64(m.Form),
				bytesText(m.Mapped), bytesText(m.Resident), m.States, m.Snapshots)
			if m.States != engine.DefaultCacheEntries || m.Snapshots < 10 {
				t.Fatalf("the cache holds %d states and %d snapshots, want it full", m.States, m.Snapshots)
			}
			if slack := m.Form*3/100 + 50<<20; m.Anonymous > m.Form+slack || m.Anonymous < m.Form-slack {
				t.Errorf("%d bytes of anonymous memory, want the form's %d within %d", m.Anonymous, m.Form, slack)
			}
			if most := m.Mapped + m.Form + 300<<20; m.Resident > most {
				t.Errorf("%d bytes of memory in all, want at most %d", m.Resident, most)
			}
		})
	}
}

// measureApart runs measure in a process of its own.
func measureApart(t *testing.T, c memoryCase) memoryFound {
	t.Helper()
	asked, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestMeasureMemory$")
	cmd.Env = append(os.Environ(), memoryVariable+"="+string(asked))
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var m memoryFound
	line, _, _ := strings.Cut(string(out), "\n")
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return m
}

// TestMeasureMemory is the other process.
func TestMeasureMemory(t *testing.T) {
	asked := os.Getenv(memoryVariable)
	if asked == "" {
		t.Skip("TestMemoryStaysWithinTheForm starts it")
	}
	var c memoryCase
	if err := json.Unmarshal([]byte(asked), &c); err != nil {
		t.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(c.measure(t)); err != nil {
		t.Fatal(err)
	}
}

// populated stands between an engine and its weights: states are as large from
// their beginning as they can become.
type populated struct {
	backend.Weights
	rows int
}

func (p populated) NewState(maxTokens int) (backend.State, error) {
	s, err := p.Weights.NewState(maxTokens)
	if err != nil {
		return nil, err
	}
	return s, s.(*cpu.State).Populate(p.rows)
}

// measure fills the cache with two conversations of many turns.
func (c memoryCase) measure(t *testing.T) memoryFound {
	s := demoSettings()
	s.model, s.anySize, s.maxSeq = c.Model, true, c.MaxSeq
	o, err := s.openBare()
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	config := o.checkpoint.Config()
	options := engine.Options{
		MaxSeq: c.MaxSeq, PrefillChunk: s.prefillChunk, Queue: s.queue, CacheEntries: s.cacheEntries,
		Vocab: config.Vocab, Turn: engine.Turn{EndOfTurn: 2, Newline: 3},
	}
	load := func(ctx context.Context, progress func(done, total int64)) (*model.Model, func() error, error) {
		m, unload, err := o.loader()(ctx, progress)
		if err != nil {
			return nil, nil, err
		}
		return model.New(m.Config(), populated{m.Weights(), min(s.prefillChunk, c.MaxSeq)}), unload, nil
	}
	e, err := engine.New(load, options)
	if err != nil {
		t.Fatal(err)
	}
	defer o.end(context.Background(), e)
	peak := watchMemory()
	for talk := range int32(s.cacheEntries) {
		prompt, keep := manyTurns(talk)
		g, err := e.Submit(context.Background(), engine.Request{Prompt: prompt, Keep: keep, MaxTokens: 8, LogProbs: engine.NoLogProbs})
		for err == nil {
			_, err = g.Next(context.Background())
		}
		if err != io.EOF {
			t.Fatal(err)
		}
	}
	form := options.Memory(config, o.checkpoint.Bytes(), o.scratch)
	status := e.Status()
	found := memoryFound{
		Form: form.Total() - form.Weights, Mapped: status.MappedBytes,
		States: int64(status.Cache.Entries), Snapshots: int64(status.Cache.Snapshots),
	}
	found.Anonymous, found.Resident = peak()
	return found
}

// manyTurns returns a prompt of eight short turns and where each ends.
func manyTurns(talk int32) (prompt []int32, ends []int) {
	for turn := range int32(8) {
		for i := range int32(10) {
			prompt = append(prompt, 100+talk*1000+turn*10+i)
		}
		prompt = append(prompt, 2, 3)
		ends = append(ends, len(prompt))
	}
	return append(prompt, 50, 51), ends
}

// watchMemory looks at the process's memory every few milliseconds until it is
// asked for the peaks.
func watchMemory() (peak func() (anonymous, resident int64)) {
	stop, peaks := make(chan struct{}), make(chan int64)
	go func() {
		most := int64(0)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			most = max(most, memoryOf("RssAnon"))
			select {
			case <-tick.C:
			case <-stop:
				peaks <- max(most, memoryOf("RssAnon"))
				return
			}
		}
	}()
	return func() (int64, int64) {
		close(stop)
		return <-peaks, memoryOf("VmHWM")
	}
}

// memoryOf returns an entry of /proc/self/status in bytes.
func memoryOf(name string) int64 {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				panic(err)
			}
			return n << 10
		}
	}
	panic("no " + name + " in /proc/self/status")
}
