package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"calla/core/checkpoint"
	"calla/core/download"
)

func newVerify() *cobra.Command {
	var m modelFiles
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Hash the downloaded model again",
		Long: "verify hashes every file of the model and compares it with its pinned digest. Of a\n" +
			"file that was verified before it says which pieces are damaged and which tensors\n" +
			"lie in them; calla pull then fetches these pieces alone. Nothing is changed.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.verify(cmd) },
	}
	m.flags(cmd)
	return cmd
}

func (m *modelFiles) verify(cmd *cobra.Command) error {
	o, err := m.options()
	if err != nil {
		return err
	}
	end := func() {}
	if !m.asJSON { // its answer is one value
		show := newJobShow(cmd, false)
		o.Progress, end = show.event, show.end
	}
	reports, err := download.Verify(cmd.Context(), o)
	end()
	if err != nil {
		return advised(err)
	}
	v := verified{Folder: o.Folder}
	for _, r := range reports {
		v.add(r)
	}
	v.name()
	if err := v.print(cmd.OutOrStdout(), m.asJSON); err != nil {
		return err
	}
	if v.wrong > 0 {
		return modelError{fmt.Errorf("%d of %d files are not right; calla pull mends them", v.wrong, len(v.Files))}
	}
	return nil
}

// verified is what calla verify says of a folder.
type verified struct {
	Folder string         `json:"folder"`
	Files  []verifiedFile `json:"files"`
	// Unnamed says why the tensors in damaged pieces could not be named.
	Unnamed string `json:"unnamed,omitempty"`
	wrong   int
}

type verifiedFile struct {
	download.Report
	// Tensors of the text model that have bytes in the damaged pieces.
	Tensors []string `json:"tensors,omitempty"`
}

func (v *verified) add(r download.Report) {
	v.Files = append(v.Files, verifiedFile{Report: r})
	if r.State != download.Right {
		v.wrong++
	}
}

// name finds the tensors in what is damaged. The headers that say where they
// are may be damaged too.
func (v *verified) name() {
	damaged := map[string]*verifiedFile{}
	for i := range v.Files {
		if f := &v.Files[i]; len(f.Damaged) > 0 {
			damaged[f.Name] = f
		}
	}
	if len(damaged) == 0 {
		return
	}
	c, err := checkpoint.Open(checkpoint.Dir(v.Folder), checkpoint.Options{AnySize: true})
	if err != nil {
		v.Unnamed = err.Error()
		return
	}
	defer c.Close()
	for t := range c.Config().Tensors() {
		w, ok := c.Weight(t.Name)
		if f := damaged[w.Shard]; ok && f != nil && overlaps(f.Damaged, w.Offset, w.Offset+w.Size) {
			f.Tensors = append(f.Tensors, t.Name)
		}
	}
}

func overlaps(spans []download.Span, begin, end int64) bool {
	for _, s := range spans {
		if s.Begin < end && begin < s.End {
			return true
		}
	}
	return false
}

// listed is how many tensors are printed for people, who can have all as JSON.
const listed = 8

func (v *verified) print(w io.Writer, asJSON bool) error {
	if asJSON {
		return printJSON(w, v)
	}
	var errs []error
	line := func(format string, args ...any) {
		_, err := fmt.Fprintf(w, format+"\n", args...)
		errs = append(errs, err)
	}
	for _, f := range v.Files {
		if f.State == download.Right {
			line("%-8s %s", f.State, f.Name)
			continue
		}
		line("%-8s %s: %s", f.State, f.Name, f.Reason)
		for _, s := range f.Damaged {
			line("         %s", s)
		}
		for i, t := range f.Tensors {
			if i == listed {
				line("         and %d tensors more", len(f.Tensors)-listed)
				break
			}
			line("         %s", t)
		}
	}
	if v.Unnamed != "" {
		line("the damaged tensors can't be named: %s", v.Unnamed)
	}
	line("%s", v.Folder)
	return errors.Join(errs...)
}
