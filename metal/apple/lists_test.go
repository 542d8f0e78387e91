package apple

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"calla/metal"
)

// bench is a driver on a fake whose dispatches do nothing, with one kernel and one
// buffer: for what does not depend on results.
type bench struct {
	*Driver
	fake   *fake
	kernel metal.Kernel
	buffer *metal.Buffer
}

func newBench(t *testing.T, change func(*fake), o Options) *bench {
	t.Helper()
	f := newFake(t, nil)
	if change != nil {
		change(f)
	}
	b := &bench{Driver: open(t, f, o), fake: f, kernel: metal.Kernel{Name: "argmax"}}
	if err := b.Prepare([]metal.Kernel{b.kernel}); err != nil {
		t.Fatal(err)
	}
	var err error
	if b.buffer, err = b.NewBuffer("b", 4096); err != nil {
		t.Fatal(err)
	}
	return b
}

// list makes a list of n dispatches.
func (b *bench) list(n int) *metal.List {
	l := &metal.List{}
	for range n {
		l.Dispatches = append(l.Dispatches, metal.Dispatch{
			Kernel: b.kernel, Args: make([]byte, 4), Buffers: []metal.Binding{{Buffer: b.buffer}},
			Grid: [3]uint32{1, 1, 1}, Threads: 32, Barrier: true,
		})
	}
	return l
}

func (b *bench) commit(t *testing.T, n int) metal.Completion {
	t.Helper()
	c, err := b.Commit(b.list(n))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// close closes the driver and looks that nothing is left.
func (b *bench) close(t *testing.T) {
	t.Helper()
	b.Free(b.buffer)
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	if n := b.fake.live(); n != 0 {
		t.Errorf("%d handles left: %s", n, b.fake.kinds())
	}
}

// wants looks for all parts of an error.
func wants(t *testing.T, err error, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if err == nil || !strings.Contains(err.Error(), p) {
			t.Errorf("error %v, want %q in it", err, p)
		}
	}
}

// TestFailedCommand follows command buffers that fail: the error names what it
// can, the next list runs behind a new fence, dispatch by dispatch, so that the
// next error names the one.
func TestFailedCommand(t *testing.T) {
	b := newBench(t, func(f *fake) {
		f.faults.command = map[int]nativeError{1: {3, "page fault"}, 3: {3, "page fault"}}
		f.faults.encoder = 2
	}, Options{})
	if err := b.commit(t, 5).Wait(); err != nil {
		t.Fatal(err)
	}
	wants(t, b.commit(t, 5).Wait(), "dispatches 0 to 4 of 5, argmax to argmax", "page fault (3)")
	fences := b.fake.count("fence")
	if err := b.commit(t, 5).Wait(); err != nil {
		t.Errorf("the next list: %v", err)
	}
	if b.fake.count("fence") != fences+1 {
		t.Error("the list behind a failure goes on with a fence that nobody knows the state of")
	}
	wants(t, b.commit(t, 5).Wait(), "dispatch 2 of 5, argmax", "page fault (3)")
	b.close(t)
}

// TestFailedAhead has two lists under way when the first fails: each has its own
// end, and the next starts anew.
func TestFailedAhead(t *testing.T) {
	b := newBench(t, func(f *fake) {
		f.faults.command = map[int]nativeError{0: {2, "timeout"}}
		f.faults.encoder = -1
	}, Options{})
	first, second := b.commit(t, 3), b.commit(t, 3)
	if err := second.Wait(); err != nil {
		t.Errorf("the second list: %v", err)
	}
	wants(t, first.Wait(), "dispatches 0 to 2 of 3", "timeout (2)")
	if err := b.commit(t, 3).Wait(); err != nil {
		t.Errorf("the third list: %v", err)
	}
	b.close(t)
}

// TestLostDevice refuses all that comes behind a device that is gone.
func TestLostDevice(t *testing.T) {
	for _, code := range []int64{accessRevoked, deviceRemoved} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			b := newBench(t, func(f *fake) { f.faults.command = map[int]nativeError{0: {code, "gone"}} }, Options{})
			wants(t, b.commit(t, 1).Wait(), "gone")
			_, err := b.Commit(b.list(1))
			wants(t, err, "the GPU is lost", "gone")
			b.close(t)
		})
	}
}

// TestHang gives up a list that does not end, keeps what it may still touch, and
// goes on once it has ended after all.
func TestHang(t *testing.T) {
	b := newBench(t, nil, Options{Limit: 1})
	b.fake.faults.hangs = true
	c := b.commit(t, 4)
	other, err := b.NewBuffer("other", 64)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, c.Wait(), "dispatches 0 to 3 of 4", "not done after 1ns")
	b.Free(b.buffer)
	b.Free(other) // under way as far as anyone knows
	_, err = b.Commit(&metal.List{})
	wants(t, err, "not done after 1ns")
	if b.fake.waited != 0 {
		t.Errorf("it was waited for again, for %v", b.fake.waited)
	}

	b.fake.faults.hangs = false
	if b.buffer, err = b.NewBuffer("b", 4096); err != nil {
		t.Fatal(err)
	}
	if err := b.commit(t, 4).Wait(); err != nil {
		t.Errorf("once the GPU came back: %v", err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("the list that hung: %v", err)
	}
	b.close(t)
}

// TestHangForEver closes a driver whose list does not end: its memory stays.
func TestHangForEver(t *testing.T) {
	b := newBench(t, nil, Options{Limit: 1})
	b.fake.faults.hangs = true
	b.commit(t, 4)
	b.Free(b.buffer)
	wants(t, b.Close(), "not done after", "1 lists")
	if !strings.Contains(b.fake.kinds(), "buffer b") {
		t.Error("memory is released that the GPU may be at work on")
	}
}

// TestCloseInFlight closes a driver with lists under way.
func TestCloseInFlight(t *testing.T) {
	b := newBench(t, nil, Options{})
	c := b.commit(t, 2)
	b.commit(t, 2)
	b.close(t)
	if err := c.Wait(); err != nil {
		t.Errorf("a list that was under way: %v", err)
	}
	if _, err := b.Commit(&metal.List{}); !errors.Is(err, errClosed) {
		t.Errorf("Commit: %v", err)
	}
	if err := b.Prepare(nil); !errors.Is(err, errClosed) {
		t.Errorf("Prepare: %v", err)
	}
	if err := b.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// TestPartlyCommitted loses the rest of a list whose first command buffers were
// committed.
func TestPartlyCommitted(t *testing.T) {
	for after := range 3 {
		t.Run(fmt.Sprintf("after %d", after), func(t *testing.T) {
			b := newBench(t, nil, Options{})
			b.pace.rate = 1
			b.fake.faults.submitted = after + 1
			_, err := b.Commit(b.list(3))
			wants(t, err, fmt.Sprintf("%d of 3 command buffers committed", after))
			b.fake.faults.submitted = 0
			fences := b.fake.count("fence")
			if err := b.commit(t, 3).Wait(); err != nil {
				t.Errorf("the next list: %v", err)
			}
			if b.fake.count("fence") != fences+1 {
				t.Error("the next list goes on with the fence of one that was cut off")
			}
			b.close(t)
		})
	}
}

// TestRefusedLists commits lists that no device would take.
func TestRefusedLists(t *testing.T) {
	b := newBench(t, nil, Options{})
	freed, err := b.NewBuffer("freed", 64)
	if err != nil {
		t.Fatal(err)
	}
	b.Free(freed)
	for _, tt := range []struct {
		name   string
		change func(*metal.Dispatch)
		want   string
	}{
		{"a kernel that was not prepared", func(d *metal.Dispatch) { d.Kernel.Constants[1] = 5 }, "argmax[0, 5] was not prepared"},
		{"more threads than the pipeline has registers for", func(d *metal.Dispatch) { d.Threads = 1024 }, "at most 512"},
		{"a freed buffer", func(d *metal.Dispatch) { d.Buffers[0].Buffer = freed }, "buffer freed, which was freed"},
		{"an offset beyond the buffer", func(d *metal.Dispatch) { d.Buffers[0].Offset = 4096 }, "offset 4096"},
		{"no threads", func(d *metal.Dispatch) { d.Threads = 0 }, "0 threads"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b.pipelines[b.kernel] = pipeline{b.pipelines[b.kernel].handle, 512}
			l := b.list(2)
			tt.change(&l.Dispatches[1])
			_, err := b.Commit(l)
			wants(t, err, "dispatch 1 of 2", tt.want)
		})
	}
	if c, err := b.Commit(&metal.List{}); err != nil || c.Wait() != nil {
		t.Errorf("an empty list: %v", err)
	}
	b.close(t)
}

// TestNoBuffer has no memory for a buffer.
func TestNoBuffer(t *testing.T) {
	b := newBench(t, func(f *fake) { f.faults.buffer = "kv3" }, Options{})
	_, err := b.NewBuffer("kv3", 1<<20)
	wants(t, err, "buffer kv3", "1048576 bytes", "Apple M3 Max")
	_, err = b.NewBuffer("layer7", 5<<30)
	wants(t, err, "buffer layer7 of 5368709120 bytes", "4294967296")
	b.close(t)
}

// TestQueue never has more command buffers under way than the queue is for. That
// the fake sees it if there are is its own rule.
func TestQueue(t *testing.T) {
	b := newBench(t, nil, Options{})
	for range 12 {
		b.pace.rate = 1
		b.commit(t, 100)
	}
	if n := len(b.running); n < 2 || n > 5 {
		t.Errorf("%d lists of 100 command buffers under way, want up to %d command buffers", n, mostUnfinished)
	}
	b.close(t)
}

// TestFailedWhileFull finds that a list failed when another waits for its place in
// the queue: the other runs behind a new fence.
func TestFailedWhileFull(t *testing.T) {
	b := newBench(t, func(f *fake) { f.faults.command = map[int]nativeError{0: {3, "page fault"}} }, Options{})
	var first metal.Completion
	for i := range 8 {
		b.pace.rate = 1
		c := b.commit(t, 100)
		if i == 0 {
			first = c
		}
	}
	if n := b.fake.count("fence"); n != 2 {
		t.Errorf("%d fences, want one before the failure and one behind it", n)
	}
	wants(t, first.Wait(), "page fault")
	b.close(t)
}

// TestManySteps runs a million lists, two under way, with buffers that come and
// go: as many handles are live at the end as at the start.
func TestManySteps(t *testing.T) {
	steps := 1_000_000
	if testing.Short() || raceEnabled {
		steps = 20_000
	}
	b := newBench(t, nil, Options{})
	l := b.list(3)
	var last metal.Completion
	step := func(i int) {
		next, err := b.Commit(l)
		if err != nil {
			t.Fatal(err)
		}
		if last != nil {
			if err := last.Wait(); err != nil {
				t.Fatal(err)
			}
		}
		last = next
		if i%100 == 0 {
			x, err := b.NewBuffer("inputs", 64)
			if err != nil {
				t.Fatal(err)
			}
			b.Free(x)
		}
	}
	for i := range 200 {
		step(i)
	}
	want := b.fake.live()
	for i := range steps {
		step(i)
	}
	if got := b.fake.live(); got != want {
		t.Errorf("%d handles after %d steps, want %d as before them", got, steps, want)
	}
	b.close(t)
}
