package download

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"sync"
	"testing"
	"time"

	"calla/core/download/hubtest"
)

// childVariable makes the test binary pull, as a process that can be killed.
const childVariable = "CALLA_DOWNLOAD_CHILD"

// order is what a child is told. At the N-th Step it says so and waits to be
// killed.
type order struct {
	Root, Folder, Endpoint string
	Manifest               Manifest
	Places                 []string
	Step                   string
	N                      int
}

func child(text string) {
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	var mu sync.Mutex
	step = func(what string) {
		mu.Lock() // held for ever where we are to be killed
		if what == o.Step {
			if o.N--; o.N == 0 {
				fmt.Println("reached")
				select {}
			}
		}
		mu.Unlock()
	}
	_, err := Pull(context.Background(), Options{
		Manifest: o.Manifest, Store: NewStore(o.Root), Folder: o.Folder, Endpoint: o.Endpoint, Places: o.Places,
		Connections: 3, patience: quick, piece: testPiece,
	})
	fmt.Println("ended:", err)
}

// kill lets a child pull for the site and kills it at a step. It reports false
// where the pull ends before.
func (s *site) kill(at string, n int) bool {
	s.t.Helper()
	cmd, out := s.child(at, n)
	line, _ := bufio.NewReader(out).ReadString('\n')
	s.must(cmd.Process.Kill())
	cmd.Wait()
	return line == "reached\n"
}

// child starts a process that pulls for the site.
func (s *site) child(at string, n int) (*exec.Cmd, io.Reader) {
	s.t.Helper()
	text, err := json.Marshal(order{s.Store.root, s.Folder, s.hub.URL, s.Manifest, s.Places, at, n})
	if err != nil {
		s.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		s.t.Skipf("the test binary can't be started again: %v", err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Skipf("the test binary can't be started again: %v", err)
	}
	return cmd, out
}

// steps counts the steps of what do does.
func steps(do func() *Receipt) map[string]int {
	count := map[string]int{}
	var mu sync.Mutex
	before := step
	step = func(what string) {
		mu.Lock()
		defer mu.Unlock()
		count[what]++
	}
	defer func() { step = before }()
	do()
	return count
}

// TestKilled kills a pull with SIGKILL at its first, a middle and its last step
// of each kind. What has a final name then is right, and the next pull ends what
// was begun without fetching again what was proved.
func TestKilled(t *testing.T) {
	for _, tt := range []struct {
		name    string
		prepare func(t *testing.T) *site
		want    []string // steps that must be among those
	}{
		{"a first pull", func(t *testing.T) *site { return newSite(t) },
			[]string{"journal written", "part opened", "bytes written", "bytes noted", "receipt written", "renamed", "journal removed", "new content written"}},
		{"a repair", func(t *testing.T) *site {
			s := newSite(t)
			s.pull()
			s.damage(shard1, 5*testPiece+1, 9*testPiece)
			s.verify()
			return s
		}, []string{"damage noted", "damaged file made a part", "renamed"}},
		{"a pull that finds copies", func(t *testing.T) *site {
			s := newSite(t)
			s.Places = []string{s.copyTo(t.TempDir(), shard1, "config.json")}
			return s
		}, []string{"link made", "link renamed", "renamed"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			count := steps(tt.prepare(t).pull)
			for _, want := range tt.want {
				if count[want] == 0 {
					t.Errorf("the pull has no step %q", want)
				}
			}
			for what, n := range count {
				for _, at := range slices.Compact([]int{1, (n + 1) / 2, n}) {
					t.Run(fmt.Sprintf("%s %d of %d", what, at, n), func(t *testing.T) {
						s := tt.prepare(t)
						if !s.kill(what, at) {
							t.Fatal("the pull ended before")
						}
						if tt.name != "a repair" { // there the damaged file may still be in its place
							s.provedOnly()
						}
						s.keepsWhatItHas()
						s.origins(Fetched, s.linkedNames()...)
					})
				}
			}
		})
	}
}

// TestKilledAtAnyTime kills one pull after another, wherever they are.
func TestKilledAtAnyTime(t *testing.T) {
	s := newSite(t)
	s.hub.Misbehave(func(r *hubtest.Reply) { r.Delay = 2 * time.Millisecond })
	for round := range 15 {
		s.killAfter(time.Duration(10+5*round) * time.Millisecond)
		s.provedOnly()
	}
	s.keepsWhatItHas()
	s.origins(Fetched)
}

// killAfter lets a child pull, and kills it after a while.
func (s *site) killAfter(d time.Duration) {
	s.t.Helper()
	cmd, _ := s.child("none", 1)
	time.Sleep(d)
	s.must(cmd.Process.Kill())
	cmd.Wait()
}

// damage changes bytes of a file and leaves its time as it was, as a failing
// disk does.
func (s *site) damage(name string, at ...int64) {
	s.t.Helper()
	path := s.path(name)
	info, err := os.Stat(path)
	if err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	for _, off := range at {
		var b [1]byte
		if _, err := f.ReadAt(b[:], off); err != nil {
			s.t.Fatal(err)
		}
		b[0] ^= 1
		if _, err := f.WriteAt(b[:], off); err != nil {
			s.t.Fatal(err)
		}
	}
	if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
		s.t.Fatal(err)
	}
}
