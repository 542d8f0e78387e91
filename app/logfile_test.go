package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestLogTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calla.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	l.max = 1000
	line := func(i int) []byte { return fmt.Appendf(nil, "%09d\n", i) }
	for i := range 450 {
		if _, err := l.Write(line(i)); err != nil {
			t.Fatal(err)
		}
		if i == 10 { // as after a new start
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if l, err = openLog(path); err != nil {
				t.Fatal(err)
			}
			l.max = 1000
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	for name, from := range map[string]int{path: 400, path + ".1": 300, path + ".2": 200} {
		var want []byte
		for i := from; i < min(from+100, 450); i++ {
			want = append(want, line(i)...)
		}
		if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has %d bytes, %v; want the entries from %d on", filepath.Base(name), len(got), err, from)
		}
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want it readable by its owner alone", filepath.Base(name), info.Mode(), err)
		}
	}
	if files, _ := filepath.Glob(path + "*"); len(files) != keptLogs {
		t.Errorf("there are %v, want %d logs", files, keptLogs)
	}
}

func TestLogHasWholeEntries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "calla.log")
	l, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	l.max = 50_000
	var all sync.WaitGroup
	for w := range 4 {
		all.Go(func() {
			for range 300 {
				l.Write(fmt.Appendf(nil, "%s\n", bytes.Repeat([]byte{'a' + byte(w)}, 60)))
			}
		})
	}
	all.Wait()
	for n := range keptLogs {
		b, err := os.ReadFile(l.place(n))
		if err != nil && n == 0 {
			t.Fatal(err)
		}
		for entry := range bytes.Lines(b) {
			if len(entry) != 61 || bytes.Count(entry, entry[:1]) != 60 {
				t.Fatalf("entry %q, want 60 of one letter", entry)
			}
		}
	}
}

func TestLogThatCannotBeOpened(t *testing.T) {
	if l, err := openLog(t.TempDir()); err == nil {
		l.Close()
		t.Error("a folder was taken for a log")
	}
	missing := filepath.Join(t.TempDir(), "none")
	if l, err := openLog(filepath.Join(missing, "calla.log")); err == nil {
		l.Close()
		t.Error("a log was opened in a folder that is not there")
	}
	if _, err := os.Stat(missing); err == nil {
		t.Error("the folder was made")
	}
}
