package download

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"sync"
)

// localError is an error of this machine, which another request can't mend.
type localError struct{ error }

func (e localError) Unwrap() error { return e.error }

// Is makes a full disk ErrNoSpace.
func (e localError) Is(target error) bool { return target == ErrNoSpace && diskFull(e.error) }

// part is a file on its way and its journal. Its methods may be called from
// several goroutines for different pieces.
type part struct {
	file  File
	cut   pieces
	final string // the path it gets when it is proved

	data, log *os.File

	mu  sync.Mutex
	got []prefix // of each piece: what is on the disk
}

// openPart opens what there is of f beside its final name, or begins anew. What
// the journal lists is not proved yet; see recheck.
func openPart(final string, f File, cut pieces) (*part, error) {
	got, ok, err := readJournal(final, f, cut)
	if err != nil {
		return nil, err
	}
	if err := clearPart(final, ok); err != nil {
		return nil, err
	}
	// The journal comes first: a part without one is not ours.
	if err := writeJournal(final, f, cut, got); err != nil {
		return nil, err
	}
	step("journal written")
	p := &part{file: f, cut: cut, final: final, got: got}
	if p.data, err = os.OpenFile(final+partSuffix, os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if err := errors.Join(p.trim(), p.openLog()); err != nil {
		p.close()
		return nil, err
	}
	step("part opened")
	return p, nil
}

// clearPart looks at what lies under the name of the unfinished file: ours is
// kept where its journal is f's and else removed; anything else is refused.
func clearPart(final string, ours bool) error {
	path := final + partSuffix
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil
	case err != nil:
		return err
	case ours && info.Mode().IsRegular():
		return nil
	case isJournal(final + journalSuffix):
		return os.Remove(path)
	}
	return fmt.Errorf("%s is there and not ours: move it away, or choose another folder", path)
}

// trim cuts what is behind the file's size: a repair may begin with a file that
// grew.
func (p *part) trim() error {
	info, err := p.data.Stat()
	if err != nil || info.Size() <= p.cut.size {
		return err
	}
	return p.data.Truncate(p.cut.size)
}

func (p *part) openLog() (err error) {
	p.log, err = os.OpenFile(p.final+journalSuffix, os.O_WRONLY|os.O_APPEND, 0)
	return err
}

func (p *part) close() error { return errors.Join(p.data.Close(), p.log.Close()) }

// write puts bytes that follow what piece i has so far to their place and notes
// them.
func (p *part) write(i int, b []byte) error {
	had := p.prefix(i)
	if _, err := p.data.WriteAt(b, p.cut.span(i).Begin+had.n); err != nil {
		return err
	}
	step("bytes written")
	now := prefix{had.n + int64(len(b)), crc32.Update(had.sum, castagnoli, b)}
	// One call, so that lines of other pieces never mix with it.
	if _, err := p.log.WriteString(journalLine(i, now)); err != nil {
		return err
	}
	step("bytes noted")
	p.mu.Lock()
	defer p.mu.Unlock()
	p.got[i] = now
	return nil
}

// prefix returns what is on the disk of piece i.
func (p *part) prefix(i int) prefix {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got[i]
}

// full says whether all of piece i is on the disk.
func (p *part) full(i int) bool { return p.prefix(i).n == p.cut.length(i) }

// bytes returns how much is on the disk.
func (p *part) bytes() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	var n int64
	for _, g := range p.got {
		n += g.n
	}
	return n
}

// recheck reads again what the journal lists. What is not as it says counts as
// never fetched. It returns the digest of the full pieces that the file begins
// with. progress is told of bytes read.
func (p *part) recheck(ctx context.Context, progress func(int64)) (hashed, error) {
	h := hashed{digest: newDigest(p.file)}
	for i, want := range p.got {
		span := p.cut.span(i)
		leads := h.at == span.Begin && want.n == p.cut.length(i)
		if want.n == 0 {
			continue
		}
		var into io.Writer = io.Discard
		if leads {
			into = h.digest
		}
		before := h.digest.appendState(nil)
		sum, err := readSpan(ctx, p.data, Span{span.Begin, span.Begin + want.n}, into, progress)
		switch {
		case ctx.Err() != nil:
			return h, context.Cause(ctx)
		case err != nil || sum != want.sum: // what can't be read is damaged too
			p.got[i] = prefix{}
			if err := h.digest.restore(before); err != nil {
				panic("download: go back to a digest's state: " + err.Error())
			}
		case leads:
			h.reached(span.End, p.cut)
		}
	}
	return h, p.compact()
}

// compact makes the journal anew, with a line a piece.
func (p *part) compact() error {
	if err := writeJournal(p.final, p.file, p.cut, p.got); err != nil {
		return err
	}
	return errors.Join(p.log.Close(), p.openLog())
}

// discard throws away what arrived: its digest is wrong.
func (p *part) discard() error { return errors.Join(p.close(), removePart(p.final)) }
