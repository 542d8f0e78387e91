package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"calla/core/download"
)

func newModel() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "model",
		Short: "List and remove downloaded models",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newModelList(), newModelRemove())
	return cmd
}

func newModelList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the folders with models",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := modelStore()
			if err != nil {
				return err
			}
			receipts, err := s.Receipts()
			if err != nil {
				return err
			}
			return printModels(cmd.OutOrStdout(), receipts, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// modelLine is a folder as calla model ls prints it.
type modelLine struct {
	Folder     string `json:"folder"`
	Repository string `json:"repository"`
	Revision   string `json:"revision"`
	Done       int64  `json:"done"`
	Total      int64  `json:"total"`
	State      string `json:"state"` // complete, incomplete or changed
	Reason     string `json:"reason,omitempty"`
}

func newModelLine(r *download.Receipt) modelLine {
	s := r.Status()
	l := modelLine{r.Folder, r.Repository, r.Revision, s.Done, s.Total, "incomplete", ""}
	switch {
	case s.Complete():
		l.State = "complete"
	case s.Changed != nil:
		l.State, l.Reason = "changed", s.Changed.Error()
	}
	return l
}

func printModels(w io.Writer, receipts []*download.Receipt, asJSON bool) error {
	lines := []modelLine{}
	for _, r := range receipts {
		lines = append(lines, newModelLine(r))
	}
	if asJSON {
		return printJSON(w, lines)
	}
	if len(lines) == 0 {
		_, err := fmt.Fprintln(w, "no models; calla pull downloads one")
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, l := range lines {
		state := l.State
		if state == "incomplete" {
			state = fmt.Sprintf("%d %%", l.Done*100/max(l.Total, 1))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", l.Repository, bytesText(l.Total), state, l.Folder)
	}
	return t.Flush()
}

func newModelRemove() *cobra.Command {
	var m modelFiles
	cmd := &cobra.Command{
		Use:   "rm",
		Short: "Remove the downloaded model",
		Long: "rm removes from the model's folder what calla pull brought: files that it fetched,\n" +
			"links that it made, and what is unfinished. What was there before stays, and so\n" +
			"do the copies of other programs that the links lead to.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return m.remove(cmd.OutOrStdout()) },
	}
	m.flags(cmd)
	return cmd
}

func (m *modelFiles) remove(w io.Writer) error {
	o, err := m.options()
	if err != nil {
		return err
	}
	removed, err := o.Store.Remove(o.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return modelError{fmt.Errorf("nothing was pulled to %s", o.Folder)}
	}
	if err != nil {
		return advised(err)
	}
	if m.asJSON {
		return printJSON(w, removed)
	}
	for _, path := range removed.Kept {
		fmt.Fprintf(w, "kept, since it was not fetched: %s\n", path)
	}
	_, err = fmt.Fprintf(w, "freed %s in %s\n", bytesText(removed.Freed), o.Folder)
	return err
}
