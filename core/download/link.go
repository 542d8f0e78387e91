package download

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// link looks in other places for the files that are missing and links to those
// that are right. It returns what is still missing.
func (w *work) link(ctx context.Context, missing []File) ([]File, error) {
	paths := make(map[string][]string, len(missing))
	for _, f := range missing {
		paths[f.Name] = search(w.Manifest, f, w.Places, w.folder)
	}
	for {
		var exams []*exam
		for _, f := range missing {
			if rest := paths[f.Name]; len(rest) > 0 {
				exams = append(exams, &exam{file: f, path: rest[0], cut: w.cut(f)})
				paths[f.Name] = rest[1:]
			}
		}
		if len(exams) == 0 {
			return missing, nil
		}
		if err := w.examine(ctx, exams); err != nil {
			return nil, err
		}
		linked, err := w.linkRight(exams)
		if err != nil {
			return nil, err
		}
		missing = without(missing, linked)
	}
}

// linkRight links to those files that are right, and returns their names.
func (w *work) linkRight(exams []*exam) (map[string]bool, error) {
	linked := map[string]bool{}
	for _, e := range exams {
		if !e.right() {
			w.meter.report(fmt.Sprintf("%s is not used: %v", e.path, e.verdict()))
			continue
		}
		ok, err := w.linkTo(e)
		if err != nil {
			return nil, err
		}
		linked[e.file.Name] = ok
	}
	return linked, nil
}

// linkTo links to a file that is right. Its receipt is written first: were we
// stopped in between, the next pull would make the link. It reports false where
// the folder's disk has no links.
func (w *work) linkTo(e *exam) (bool, error) {
	target, err := filepath.Abs(e.path)
	if err != nil {
		return false, err
	}
	if err := w.prove(e.proof(Linked, target)); err != nil {
		return false, err
	}
	final := w.final(e.file)
	if err := linkFile(target, final); err != nil {
		w.meter.report(fmt.Sprintf("%s is right but can't be linked to: %v", e.path, err))
		return false, w.disprove(e.file.Name)
	}
	step("link renamed")
	if isJournal(final + journalSuffix) {
		return true, removePart(final)
	}
	return true, nil
}

func without(files []File, names map[string]bool) []File {
	var rest []File
	for _, f := range files {
		if !names[f.Name] {
			rest = append(rest, f)
		}
	}
	return rest
}

// linkFile makes a link that takes the place of whatever had its name.
func linkFile(target, name string) error {
	temporary := name + partSuffix + ".link"
	if err := os.Remove(temporary); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Symlink(target, temporary); err != nil {
		return err
	}
	step("link made")
	return moveFile(temporary, name)
}
