package download

import (
	"fmt"
	"io"
	"sync"
)

// sequence hashes a file in order while its bytes arrive in any.
//
// Invariants:
//   - bytes before next are hashed or queued, each once, in order;
//   - bytes that arrive at next are queued as they are, so that they are never
//     read back; others are read from the disk when next comes to them;
//   - queued bytes in memory are at most maxQueued and one buffer a writer.
type sequence struct {
	part *part

	mu     sync.Mutex
	cond   sync.Cond
	next   int64
	queue  []stretch
	queued int64 // bytes in memory
	closed bool

	// Of the goroutine that hashes.
	hashed
	readBack int64 // bytes, for tests
}

// hashed is how far the digest of a file is.
type hashed struct {
	digest digest
	states chain // between the pieces so far
	at     int64 // bytes
}

// reached notes that the digest has the bytes before at.
func (h *hashed) reached(at int64, cut pieces) {
	h.at = at
	if at%cut.piece == 0 && at < cut.size {
		h.states = h.digest.appendState(h.states)
	}
}

// stretch is a run of bytes within one piece, in memory or on the disk.
type stretch struct {
	Span
	buf *[]byte // of buffers; nil: on the disk
}

// maxQueued is how many bytes may wait in memory, before whoever brings more
// has to wait too.
const maxQueued = 16 * readSize

// newSequence goes on from what is hashed, which ends where a piece does.
func newSequence(p *part, h hashed) *sequence {
	s := &sequence{part: p, hashed: h, next: h.at}
	s.cond.L = &s.mu
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance()
	return s
}

// arrived takes bytes that were just written at off, in a buffer of buffers
// that is the sequence's from now on.
func (s *sequence) arrived(off int64, n int, buf *[]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if off == s.next && !s.closed {
		s.push(stretch{Span{off, off + int64(n)}, buf})
		s.queued += int64(n)
	} else {
		buffers.Put(buf)
	}
	s.advance()
	for s.queued > maxQueued && !s.closed {
		s.cond.Wait()
	}
}

// advance queues what lies on the disk from next on.
func (s *sequence) advance() {
	cut := s.part.cut
	for s.next < cut.size {
		i := cut.at(s.next)
		end := cut.span(i).Begin + s.part.prefix(i).n
		if end <= s.next {
			return
		}
		s.push(stretch{Span: Span{s.next, end}})
	}
}

func (s *sequence) push(t stretch) {
	s.queue = append(s.queue, t)
	s.next = t.End
	s.cond.Broadcast()
}

// close ends run early, and the waiting of writers.
func (s *sequence) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.cond.Broadcast()
}

// run hashes what arrives until the file is complete, and reports true; or
// until close, and reports false.
func (s *sequence) run() (complete bool, err error) {
	for s.at < s.part.cut.size {
		t, ok := s.pop()
		if !ok {
			return false, nil
		}
		if err := s.hash(t); err != nil {
			s.close()
			return false, err
		}
	}
	return true, nil
}

func (s *sequence) pop() (stretch, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.queue) == 0 && !s.closed {
		s.cond.Wait()
	}
	if s.closed {
		return stretch{}, false
	}
	t := s.queue[0]
	s.queue = s.queue[1:]
	return t, true
}

// hash adds a stretch to the digest, and keeps the state at the end of a piece.
func (s *sequence) hash(t stretch) error {
	if t.Begin != s.at {
		panic(fmt.Sprintf("download: hash %v of %s after %d bytes", t.Span, s.part.file.Name, s.at))
	}
	if t.buf != nil {
		s.digest.Write((*t.buf)[:t.End-t.Begin])
		s.release(t)
	} else if _, err := io.Copy(s.digest, io.NewSectionReader(s.part.data, t.Begin, t.End-t.Begin)); err != nil {
		return fmt.Errorf("read back %v: %w", t.Span, err)
	} else {
		s.readBack += t.End - t.Begin
	}
	s.reached(t.End, s.part.cut)
	return nil
}

func (s *sequence) release(t stretch) {
	buffers.Put(t.buf)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queued -= t.End - t.Begin
	s.cond.Broadcast()
}
