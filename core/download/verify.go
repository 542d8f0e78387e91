package download

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
)

// Report says how a file of a manifest is in a folder.
type Report struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Reason says in words what is wrong.
	Reason string `json:"reason,omitempty"`
	// Damaged are the stretches that are wrong, where a receipt lets them be
	// told from the others.
	Damaged []Span `json:"damaged,omitempty"`
}

// State is what verification finds of a file.
type State string

const (
	Right   State = "right"   // its pinned digest matches
	Wrong   State = "wrong"   // it is there and does not match
	Missing State = "missing" // it is not there, or a link that leads nowhere
)

// Verify hashes all files that the folder has of the manifest, and brings the
// receipt up to date. It changes no file. The reports are in the manifest's
// order; what is wrong with files is said there, not by the error.
func Verify(ctx context.Context, o Options) ([]Report, error) {
	r, err := verify(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("download: verify: %w", err)
	}
	return r, nil
}

func verify(ctx context.Context, o Options) ([]Report, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	w, end, err := begin(o)
	if err != nil {
		return nil, err
	}
	defer end()
	exams := make([]*exam, len(o.Manifest.Files))
	for i, f := range o.Manifest.Files {
		exams[i] = w.exam(f)
	}
	if err := w.examine(ctx, exams); err != nil {
		return nil, err
	}
	reports := make([]Report, len(exams))
	var findings []Proof
	for i, e := range exams {
		reports[i] = e.report()
		if p, ok := w.finding(e); ok {
			findings = append(findings, p)
		}
	}
	if len(findings) == 0 && len(w.receipt.Files) == 0 {
		return reports, nil // nothing worth a receipt
	}
	return reports, w.prove(findings...)
}

// finding returns what the receipt is to say of a file after a look at it. A
// file that is wrong and was never proved is no business of a receipt.
func (w *work) finding(e *exam) (Proof, bool) {
	if e.right() {
		return e.proof(w.origin(e.file.Name, e.stamp, Found)), true
	}
	p := w.receipt.proof(e.file)
	if p == nil || e.err != nil {
		return Proof{}, false
	}
	changed := *p
	changed.Damaged = true
	return changed, true
}

func (e *exam) report() Report {
	r := Report{Name: e.file.Name, State: Right}
	if err := e.verdict(); err != nil {
		r.State, r.Reason = Wrong, err.Error()
	}
	if errors.Is(e.err, fs.ErrNotExist) {
		r.State = Missing
	}
	if e.err == nil && e.known != nil {
		for _, i := range e.damaged() {
			r.Damaged = append(r.Damaged, e.cut.span(i))
		}
	}
	return r
}
