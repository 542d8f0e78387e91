package apple

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestWiring wires memory with the first list, lets it go after a while without
// lists, and wires it again.
func TestWiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil, Options{Idle: time.Minute})
		wired := func(when string, want bool) {
			t.Helper()
			synctest.Wait()
			if got := b.fake.wired(b.handles.set); got != want {
				t.Errorf("%s: wired %v, want %v", when, got, want)
			}
		}
		wired("before any list", false)
		c := b.commit(t, 1)
		wired("with a list under way", true)
		time.Sleep(3 * time.Minute)
		wired("with it under way for long", true)
		if err := c.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := b.commit(t, 1).Wait(); err != nil {
			t.Fatal(err)
		}
		calls := b.fake.count("wire true")
		time.Sleep(59 * time.Second)
		wired("soon after", true)
		if n := b.fake.count("wire true") - calls; n < 117 || n > 119 {
			t.Errorf("asked for again %d times in 59 seconds, want every half", n)
		}
		time.Sleep(2 * time.Second)
		wired("long after", false)
		calls = b.fake.count("wire true")
		time.Sleep(time.Hour)
		if b.fake.count("wire true") != calls || b.fake.count("wire false") != 1 {
			t.Error("an idle driver does not rest")
		}
		if err := b.commit(t, 1).Wait(); err != nil {
			t.Fatal(err)
		}
		wired("with another list", true)

		calls = b.fake.count("wire true")
		b.commit(t, 1)
		if n := b.fake.count("wire true"); n != calls {
			t.Error("wired again with nothing new")
		}
		x, err := b.NewBuffer("new", 64)
		if err != nil {
			t.Fatal(err)
		}
		b.commit(t, 1)
		if n := b.fake.count("wire true"); n != calls+1 {
			t.Error("a new buffer is not wired")
		}
		b.Free(x)
		b.close(t)
	})
}
