package apple

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"calla/metal"
)

func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 7 / 3)
	}
	return b
}

// TestTransfers moves bytes to memory that the processor does not see, about in it
// and back, in more than one piece.
func TestTransfers(t *testing.T) {
	b := newBench(t, nil, Options{})
	const size = stagingBytes + 4096
	x, err := b.NewPrivate("x", size)
	if err != nil {
		t.Fatal(err)
	}
	y, err := b.NewPrivate("y", 64)
	if err != nil {
		t.Fatal(err)
	}
	if x.Bytes != nil {
		t.Error("the processor sees private memory")
	}
	want := pattern(size)
	if err := b.Write(metal.Binding{Buffer: x}, want); err != nil {
		t.Fatal(err)
	}
	if err := b.Copy(metal.Binding{Buffer: y, Offset: 32}, metal.Binding{Buffer: x, Offset: 4}, 32); err != nil {
		t.Fatal(err)
	}
	if err := b.Clear(metal.Binding{Buffer: y}, 32); err != nil {
		t.Fatal(err)
	}
	got, far := make([]byte, size), make([]byte, 64)
	if err := errors.Join(b.Read(got, metal.Binding{Buffer: x}), b.Read(far, metal.Binding{Buffer: y})); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("what comes back is other than what was written")
	}
	if d := cmp.Diff(append(make([]byte, 32), want[4:36]...), far); d != "" {
		t.Error(d)
	}
	b.Free(x)
	b.Free(y)
	b.close(t)
}

// TestRefusedTransfers moves what can't be moved.
func TestRefusedTransfers(t *testing.T) {
	b := newBench(t, nil, Options{})
	x, err := b.NewPrivate("x", 64)
	if err != nil {
		t.Fatal(err)
	}
	freed, err := b.NewPrivate("freed", 64)
	if err != nil {
		t.Fatal(err)
	}
	b.Free(freed)
	at := func(buffer *metal.Buffer, offset int64) metal.Binding {
		return metal.Binding{Buffer: buffer, Offset: offset}
	}
	for _, tt := range []struct {
		name string
		err  error
		want string
	}{
		{"beyond the end", b.Write(at(x, 32), make([]byte, 36)), "bytes 32 to 68 of buffer x, which has 64"},
		{"before the start", b.Read(make([]byte, 4), at(x, -4)), "bytes -4 to 0 of buffer x"},
		{"half a word", b.Copy(at(x, 0), at(x, 32), 6), "bytes 0 to 6 of buffer x, want whole words"},
		{"off a word", b.Clear(at(x, 2), 4), "bytes 2 to 6 of buffer x, want whole words"},
		{"to freed memory", b.Clear(at(freed, 0), 4), "buffer freed was freed"},
		{"from freed memory", b.Copy(at(x, 0), at(freed, 0), 4), "buffer freed was freed"},
	} {
		t.Run(tt.name, func(t *testing.T) { wants(t, tt.err, tt.want) })
	}
	if err := b.Clear(at(x, 64), 0); err != nil {
		t.Errorf("nothing at the end: %v", err)
	}
	b.Free(x)
	b.close(t)
	wants(t, b.Write(at(b.buffer, 0), make([]byte, 4)), "closed")
}

// TestFailedTransfers has transfers that fail, each in its way: the error says
// which, and the next goes through.
func TestFailedTransfers(t *testing.T) {
	for _, tt := range []struct {
		name string
		ruin func(*fake)
		want string
	}{
		{"not encoded", func(f *fake) { f.faults.transfer = true }, "no encoder"},
		{"ended by an error", func(f *fake) {
			f.faults.command = map[int]nativeError{f.run.committed: {2, "timeout"}}
		}, "timeout (2)"},
		{"without an end", func(f *fake) { f.faults.hangs = true }, "not done after 1ns"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBench(t, nil, Options{Limit: 1})
			b.commit(t, 2)
			tt.ruin(b.fake)
			wants(t, b.Clear(metal.Binding{Buffer: b.buffer}, 64), tt.want)
			b.fake.faults = faults{}
			if err := b.Clear(metal.Binding{Buffer: b.buffer}, 64); err != nil {
				t.Errorf("the next: %v", err)
			}
			b.close(t)
		})
	}
	t.Run("no staging memory", func(t *testing.T) {
		b := newBench(t, func(f *fake) { f.faults.buffer = "staging" }, Options{})
		wants(t, b.Read(make([]byte, 4), metal.Binding{Buffer: b.buffer}), "buffer staging", "no memory")
		b.close(t)
	})
}

// TestTransferOrder runs transfers behind the lists that were committed before, and
// would see it if they did not wait for the fence.
func TestTransferOrder(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		t.Run(fmt.Sprintf("unordered %v", unordered), func(t *testing.T) {
			b := newBench(t, func(f *fake) { f.faults.unordered = unordered }, Options{})
			early := false
			b.fake.choose = func(ready []*fakeDispatch) *fakeDispatch {
				d := latest(ready)
				early = early || d.moves != nil && len(b.fake.run.pending) > 1
				return d
			}
			b.commit(t, 2)
			b.commit(t, 2)
			if err := b.Clear(metal.Binding{Buffer: b.buffer}, 64); err != nil {
				t.Fatal(err)
			}
			if early != unordered {
				t.Errorf("it ran before a list: %v", early)
			}
			b.close(t)
		})
	}
}
