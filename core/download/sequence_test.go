package download

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"calla/core/download/hubtest"
)

const sequencePiece = 1000

// newTestSequence returns a file of which nothing has arrived, and its content.
func newTestSequence(t testing.TB, size int) (*part, []byte) {
	t.Helper()
	content := hubtest.Random(7, size)
	m := manifestOf(t, hubtest.New(t, hubtest.File{Name: "x", Content: content}))
	p, err := openPart(filepath.Join(t.TempDir(), "x"), m.Files[0], pieces{int64(size), sequencePiece})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.close() })
	return p, content
}

// deliver writes n more bytes of piece i and tells s.
func deliver(t testing.TB, s *sequence, content []byte, i, n int) {
	t.Helper()
	off := s.part.cut.span(i).Begin + s.part.prefix(i).n
	buf := buffers.Get().(*[]byte)
	n = copy((*buf)[:n], content[off:s.part.cut.span(i).End])
	if err := s.part.write(i, (*buf)[:n]); err != nil {
		t.Fatal(err)
	}
	s.arrived(off, n, buf)
}

func checkDigest(t *testing.T, s *sequence) {
	t.Helper()
	complete, err := s.run()
	if got := s.digest.text(); !complete || err != nil || got != s.part.file.Digest() {
		t.Errorf("complete %v, error %v, digest %s, want %s", complete, err, got, s.part.file.Digest())
	}
	if err := s.states.check(s.part.file, s.part.cut.count()); err != nil {
		t.Error(err)
	}
}

func TestSequenceInOrder(t *testing.T) {
	const size = 5*sequencePiece + 17
	p, content := newTestSequence(t, size)
	s := newSequence(p, hashed{digest: newDigest(p.file)})
	for i := range p.cut.count() {
		for !p.full(i) {
			deliver(t, s, content, i, 300)
		}
	}
	checkDigest(t, s)
	if s.readBack != 0 {
		t.Errorf("%d bytes that came in order were read back", s.readBack)
	}
}

// TestSequenceHandOver lets the next piece begin while one is under way: what
// came early is read back, what comes after its turn has come is not.
func TestSequenceHandOver(t *testing.T) {
	p, content := newTestSequence(t, 2*sequencePiece)
	s := newSequence(p, hashed{digest: newDigest(p.file)})
	deliver(t, s, content, 0, 500)
	deliver(t, s, content, 1, 400) // early
	deliver(t, s, content, 0, 500)
	deliver(t, s, content, 1, 600)
	checkDigest(t, s)
	if s.readBack != 400 {
		t.Errorf("%d bytes were read back, want the 400 that came early", s.readBack)
	}
}

// TestSequenceInAnyOrder brings pieces from several goroutines at once, after
// some of them were there from the beginning.
func TestSequenceInAnyOrder(t *testing.T) {
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 0))
		size := 1 + r.IntN(30*sequencePiece)
		p, content := newTestSequence(t, size)
		order := r.Perm(p.cut.count())
		early := r.IntN(len(order) + 1)
		for _, i := range order[:early] {
			span := p.cut.span(i)
			if err := p.write(i, content[span.Begin:span.Begin+1+r.Int64N(span.End-span.Begin)]); err != nil {
				t.Fatal(err)
			}
		}
		h, err := p.recheck(context.Background(), func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		s := newSequence(p, h)
		var w sync.WaitGroup
		for k := range 4 {
			w.Go(func() {
				for j := k; j < len(order); j += 4 {
					for !p.full(order[j]) {
						deliver(t, s, content, order[j], 170)
					}
				}
			})
		}
		checkDigest(t, s)
		w.Wait()
	}
}

func TestSequenceClose(t *testing.T) {
	p, content := newTestSequence(t, 3*sequencePiece)
	s := newSequence(p, hashed{digest: newDigest(p.file)})
	deliver(t, s, content, 0, sequencePiece)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if complete, err := s.run(); complete || err != nil {
			t.Errorf("run = %v, %v after close, want false", complete, err)
		}
	}()
	s.close()
	<-done
	deliver(t, s, content, 1, sequencePiece) // must not wait for anybody
}

// TestRecheck damages what a journal vouches for: only that counts as missing.
func TestRecheck(t *testing.T) {
	p, content := newTestSequence(t, 6*sequencePiece+1)
	for i := range p.cut.count() {
		span := p.cut.span(i)
		if err := p.write(i, content[span.Begin:span.End]); err != nil {
			t.Fatal(err)
		}
	}
	for _, off := range []int64{2*sequencePiece + 5, 5 * sequencePiece} {
		if _, err := p.data.WriteAt([]byte{content[off] ^ 1}, off); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.data.Truncate(6 * sequencePiece); err != nil {
		t.Fatal(err)
	}
	h, err := p.recheck(context.Background(), func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	if h.at != 2*sequencePiece {
		t.Errorf("hashed up to byte %d, want the first damaged piece at %d", h.at, 2*sequencePiece)
	}
	for i := range p.cut.count() {
		if want := i != 2 && i != 5 && i != 6; p.full(i) != want {
			t.Errorf("piece %d is there: %v, want %v", i, p.full(i), want)
		}
	}
	// A journal read anew says the same.
	got, ok, err := readJournal(p.final, p.file, p.cut)
	if err != nil || !ok || got[2].n != 0 || got[3].n != sequencePiece {
		t.Errorf("the journal has %v, %v, %v", got, ok, err)
	}
}
