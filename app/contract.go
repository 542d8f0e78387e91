package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"calla/core/server/contract"
)

func newContract() *cobra.Command {
	var t contract.Target
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "contract URL",
		Short: "Check a server of OpenAI's API from outside",
		Long: "Contract sends a few hundred short requests to a server that speaks OpenAI's API,\n" +
			"Calla or another, and prints what of Calla's contract it keeps. What the server does\n" +
			"not have is skipped. The exit status is 1 where a check failed.",
		Example: "  calla contract http://127.0.0.1:11535",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			t.URL = args[0]
			out := cmd.OutOrStdout()
			var all []contract.Result
			err := contract.Run(cmd.Context(), t, func(r contract.Result) {
				all = append(all, r)
				if !asJSON {
					printResult(out, r)
				}
			})
			if err != nil {
				return err
			}
			return concludeContract(out, all, asJSON)
		},
	}
	f := cmd.Flags()
	f.StringVar(&t.Key, "key", "", "key to send; others can see it in the list of processes, so rather set CALLA_KEY")
	f.StringVar(&t.Model, "model", "", "id of the model to ask for; by default the first that the server lists")
	f.BoolVar(&asJSON, "json", false, "print the results as JSON")
	return cmd
}

// printResult prints one line of the table at once: a large model takes its
// time over the next.
func printResult(out io.Writer, r contract.Result) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\t%-10s\t%-58s\t%s\n", r.Outcome, r.Area, r.Name, r.Reason)
	w.Flush()
}

func concludeContract(out io.Writer, all []contract.Result, asJSON bool) error {
	n := contract.Counts(all)
	if asJSON {
		enc := json.NewEncoder(out)
		enc.SetIndent("", "  ")
		if err := enc.Encode(all); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(out, "\n%d passed, %d failed, %d skipped\n", n[contract.Pass], n[contract.Fail], n[contract.Skip])
	}
	if n[contract.Fail] > 0 {
		return exitCode(1)
	}
	return nil
}
