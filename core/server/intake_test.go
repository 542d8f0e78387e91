package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"calla/core/completion"
)

func TestIntake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newIntake(100, 20)
		read := func(bytes int) (*hold, error) {
			h := &hold{intake: in}
			_, err := io.Copy(io.Discard, h.reader(strings.NewReader(strings.Repeat("x", bytes))))
			return h, err
		}
		a, err := read(15)
		if err != nil {
			t.Fatal(err)
		}
		b, err := read(80)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := read(6); !errors.Is(err, errBusy) {
			t.Errorf("over the bound: %v, want %v", err, errBusy)
		} else {
			c.release()
		}
		if err := a.begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		begun := make(chan error, 1)
		go func() { begun <- b.begin(t.Context()) }()
		synctest.Wait()
		select {
		case err := <-begun:
			t.Fatalf("two at work that are over the bound together: %v", err)
		default:
		}
		a.release()
		a.release() // once more changes nothing
		if err := <-begun; err != nil {
			t.Errorf("a body larger than the bound by itself: %v", err)
		}
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		d, _ := read(1)
		if err := d.begin(gone); !errors.Is(err, context.Canceled) {
			t.Errorf("a client that has gone: %v", err)
		}
		d.release()
		b.release()
		if n := in.received.Load(); n != 0 {
			t.Errorf("%d bytes are held by nobody", n)
		}
	})
}

// TestManyLargeBodies sends several bodies of the largest size at once: they
// are made prompts one at a time, and all are answered.
func TestManyLargeBodies(t *testing.T) {
	var now, most atomic.Int64
	f := &fake{}
	f.play = func(completion.Request) ([]moment, error) {
		most.Store(max(most.Load(), now.Add(1)))
		defer now.Add(-1)
		time.Sleep(10 * time.Millisecond) // others would come in meanwhile
		return say("ok"), nil
	}
	url := testServer(t, f) + "/v1/chat/completions"
	body := helloWith(`"user":"` + strings.Repeat("a", maxBody-1000) + `"`)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if r := post(t, url, body); r.status != http.StatusOK {
				t.Errorf("status %d: %s", r.status, r.body)
			}
		})
	}
	all.Wait()
	if n := most.Load(); n != 1 {
		t.Errorf("%d bodies of %d bytes were made prompts at once, want 1", n, len(body))
	}
}
