package download

import (
	"errors"
	"io/fs"
	"os"
	"time"
)

// keep gives a proved file its final name. Its receipt is written first: were we
// stopped in between, the next pull would know the part by it.
func (w *work) keep(x *target) error {
	if err := x.part.data.Sync(); err != nil {
		return err
	}
	// A time that every kind of disk can keep: some round to two seconds, but
	// only once the file is no longer in memory.
	when := w.now().Truncate(2 * time.Second)
	if err := os.Chtimes(x.final+partSuffix, when, when); err != nil {
		return err
	}
	info, err := x.part.data.Stat()
	if err != nil {
		return err
	}
	p := Proof{Name: x.file.Name, Digest: x.file.Digest(), stamp: stampOf(info), Piece: w.piece, States: x.sequence.states}
	p.Origin, p.Target = w.origin(p.Name, p.stamp, Fetched) // a repaired file stays whose it was
	if err := w.prove(p); err != nil {
		return err
	}
	step("receipt written")
	return promote(x.final)
}

// promote gives a proved part its final name.
func promote(final string) error {
	if err := moveFile(final+partSuffix, final); err != nil {
		return err
	}
	step("renamed")
	if err := os.Remove(final + journalSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	step("journal removed")
	return nil
}
