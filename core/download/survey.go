package download

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// survey looks at what the folder has and returns the files that it lacks. What
// the receipt does not vouch for is hashed; what is damaged goes back to an
// unfinished file with the pieces that are right.
func (w *work) survey(ctx context.Context) (missing []File, err error) {
	var doubtful []*exam
	for _, f := range w.Manifest.Files {
		have, err := w.settled(f)
		if err != nil {
			return nil, err
		}
		if have {
			continue
		}
		if _, err := statFile(w.final(f)); errors.Is(err, fs.ErrNotExist) {
			missing = append(missing, f)
			continue
		}
		doubtful = append(doubtful, w.exam(f))
	}
	if err := w.examine(ctx, doubtful); err != nil {
		return nil, err
	}
	var proofs []Proof
	for _, e := range doubtful {
		if e.right() {
			proofs = append(proofs, e.proof(w.origin(e.file.Name, e.stamp, Found)))
			continue
		}
		if err := w.demote(ctx, e); err != nil {
			return nil, err
		}
		missing = append(missing, e.file)
	}
	return missing, w.prove(proofs...)
}

// settled says whether a file is there and the receipt vouches for it. It ends
// what a stopped pull had begun to end.
func (w *work) settled(f File) (bool, error) {
	p := w.receipt.proof(f)
	if p == nil {
		return false, nil
	}
	switch final := w.final(f); {
	case p.check(w.folder) == nil:
		if isJournal(final + journalSuffix) {
			return true, removePart(final)
		}
		return true, nil
	case p.Origin == Fetched && p.is(final+partSuffix):
		return true, promote(final)
	case p.Origin == Linked && p.is(p.Target) && absent(final):
		return true, linkFile(p.Target, final)
	}
	return false, nil
}

// is says whether the file at path is the one that was proved. One that was
// found damaged since never is, though its stamp may be the same.
func (p *Proof) is(path string) bool {
	info, err := statFile(path)
	return err == nil && !p.Damaged && stampOf(info) == p.stamp
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// exam prepares the hashing of a file of the folder, by pieces where the receipt
// knows them.
func (w *work) exam(f File) *exam {
	e := &exam{file: f, path: w.final(f), cut: w.cut(f)}
	if p := w.receipt.proof(f); p != nil && p.Piece == w.piece {
		e.known = append(chain{}, p.States...)
	}
	return e
}

// examine hashes files and tells how far that is.
func (w *work) examine(ctx context.Context, exams []*exam) error {
	if len(exams) == 0 {
		return nil
	}
	var total int64
	for _, e := range exams {
		total += e.toRead()
	}
	w.meter.begin(StageCheck, 0, total)
	return examine(ctx, exams, w.meter.add)
}

// origin returns how a file came, and where it leads if it is a link: as the
// receipt says if it is still the same one, else the given origin.
func (w *work) origin(name string, s stamp, otherwise Origin) (Origin, string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.receipt.Files {
		if p.Name == name && p.Inode == s.Inode {
			return p.Origin, p.Target
		}
	}
	return otherwise, ""
}

// demote makes way for a file that is wrong to be fetched. If its right pieces
// are known, only the others will be.
func (w *work) demote(ctx context.Context, e *exam) error {
	if e.err != nil {
		return fmt.Errorf("%s: %w", e.path, e.err)
	}
	known := e.known != nil
	if !known && e.stamp.Size != e.file.Size && !w.Store.owns(w.folder) {
		return fmt.Errorf("%s is another file: %w; move it away, or choose another folder", e.path, e.verdict())
	}
	w.meter.report(fmt.Sprintf("%s: %v", e.file.Name, e.verdict()))
	if !known {
		return nil // its name goes to the new one when that is proved
	}
	info, err := os.Lstat(e.path)
	if err != nil {
		return err
	}
	if info.Mode().IsRegular() && links(info) == 1 {
		return e.reopen()
	}
	return e.copyRight(ctx, w.meter.add)
}

// reopen makes a damaged file an unfinished one.
func (e *exam) reopen() error {
	if err := writeJournal(e.path, e.file, e.cut, e.good); err != nil {
		return err
	}
	step("damage noted")
	if err := moveFile(e.path, e.path+partSuffix); err != nil {
		return err
	}
	step("damaged file made a part")
	return nil
}

// copyRight begins an unfinished file with the right pieces of a damaged one
// that is not ours to write to.
func (e *exam) copyRight(ctx context.Context, progress func(int64)) error {
	from, err := os.Open(e.path)
	if err != nil {
		return err
	}
	defer from.Close()
	p, err := openPart(e.path, e.file, e.cut)
	if err != nil {
		return err
	}
	defer p.close()
	for i, good := range e.good {
		if good.n == 0 || p.full(i) {
			continue
		}
		p.got[i] = prefix{} // whatever part of it was there
		if _, err := readSpan(ctx, from, e.cut.span(i), pieceWriter{p, i}, progress); err != nil {
			return err
		}
	}
	return nil
}

// pieceWriter appends to a piece.
type pieceWriter struct {
	part  *part
	piece int
}

func (w pieceWriter) Write(b []byte) (int, error) {
	if err := w.part.write(w.piece, b); err != nil {
		return 0, err
	}
	return len(b), nil
}
