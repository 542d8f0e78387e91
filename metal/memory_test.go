package metal

import (
	"testing"

	"calla/core/conform"
	"calla/metal/emulator"
)

// apart is the emulated device with memory of its own.
type apart struct{ *Emulated }

var _ Private = apart{}

// far is the Native of a buffer whose bytes the processor does not see.
type far struct{ *Buffer }

func (apart) Unified() bool { return false }

func (d apart) NewPrivate(name string, bytes int64) (*Buffer, error) {
	b, err := d.NewBuffer(name, bytes)
	if err != nil {
		return nil, err
	}
	return &Buffer{Name: name, Size: bytes, Native: far{b}}, nil
}

// seen returns the buffer that the emulated device knows.
func seen(b *Buffer) *Buffer {
	if f, ok := b.Native.(far); ok {
		return f.Buffer
	}
	return b
}

func (d apart) Free(b *Buffer) { d.Emulated.Free(seen(b)) }

func (d apart) Write(to Binding, from []byte) error {
	copy(seen(to.Buffer).Bytes[to.Offset:], from)
	return nil
}

func (d apart) Read(to []byte, from Binding) error {
	copy(to, seen(from.Buffer).Bytes[from.Offset:])
	return nil
}

func (d apart) Copy(to, from Binding, bytes int64) error {
	copy(seen(to.Buffer).Bytes[to.Offset:][:bytes], seen(from.Buffer).Bytes[from.Offset:])
	return nil
}

func (d apart) Clear(to Binding, bytes int64) error {
	clear(seen(to.Buffer).Bytes[to.Offset:][:bytes])
	return nil
}

func (d apart) Commit(l *List) (Completion, error) {
	var copied List
	for _, x := range l.Dispatches {
		x.Buffers = append([]Binding(nil), x.Buffers...)
		for i, b := range x.Buffers {
			x.Buffers[i] = Binding{seen(b.Buffer), b.Offset}
		}
		copied.Dispatches = append(copied.Dispatches, x)
	}
	return d.Emulated.Commit(&copied)
}

// TestPrivate evaluates, observes, snapshots, copies and grows where the processor
// sees none of it, and wants the bits that it gets where it sees all.
func TestPrivate(t *testing.T) {
	how := emulator.Schedule{Workers: 2}
	want := privateRun(t, NewEmulated(openLibrary(t), how))
	got := privateRun(t, apart{NewEmulated(openLibrary(t), how)})
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Fatalf("value %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// privateRun returns what is seen of a few calls: values inside, logits, states.
func privateRun(t *testing.T, d Driver) (all []float32) {
	dev := New(d, Options{Observe: func(_ int, _ string, _ int, values []float32) { all = append(all, values...) }})
	m := conform.Load(t, dev, conform.Tiny(t))
	state := func() *State {
		s, err := m.NewState(1200)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s.(*State)
	}
	prefill := func(s *State, tokens ...int32) {
		step, err := m.Prefill(s, tokens, []int{s.Len()}, true)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, step.Logits()...)
	}
	a, b := state(), state()
	prefill(a, 1, 2, 3)
	snap, err := a.Save()
	if err != nil {
		t.Fatal(err)
	}
	prefill(a, 4)
	if err := b.CopyKV(a, 3); err != nil {
		t.Fatal(err)
	}
	if err := b.Restore(snap); err != nil {
		t.Fatal(err)
	}
	if err := b.grow(1100); err != nil {
		t.Fatal(err)
	}
	prefill(b, 5)
	a.Reset()
	prefill(a, 6)
	for i, l := range m.Weights().(*weights).layers {
		if l.delta.Taps.Buffer != nil {
			all = append(append(all, b.Recurrent(i)...), b.Conv(i)...)
		} else {
			all = append(append(all, b.Keys(i)...), b.Values(i)...)
		}
	}
	return all
}
