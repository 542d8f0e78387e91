// Command calla runs one large language model, Qwen3.6-35B-A3B, on the machine
// it is started on, and serves it to the programs there.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	root := newRoot()
	if program, err := os.Executable(); err == nil && len(os.Args) == 1 && inBundle(program) {
		root.SetArgs([]string{"menu"}) // opened as an app
	}
	err := root.ExecuteContext(ctx)
	var quiet exitCode
	switch {
	case err == nil:
		return 0
	case errors.As(err, &quiet):
		return int(quiet)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return 130 // as shells report a program ended by Ctrl-C
	}
	fmt.Fprintln(os.Stderr, "calla:", err)
	return status(err)
}

// exitCode ends the program with a status and no further message.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "calla",
		Short: "A private language model on your own machine",
		Long: "Calla runs one large language model, Qwen3.6-35B-A3B, on this machine and serves\n" +
			"it to the programs here through an OpenAI-compatible server on localhost.\n\n" +
			"Each flag can be given as an environment variable too: --max-seq as CALLA_MAX_SEQ.",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error {
			err := environment(cmd.Flags(), os.LookupEnv)
			if err = cmp.Or(err, cmd.ValidateRequiredFlags(), cmd.ValidateFlagGroups()); err != nil {
				return usageError{err}
			}
			return nil
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(), newMenu(), newChat(), newEval(), newAudit(), newDoctor(), newPull(), newVerify(), newModel(), newContract(), newBench(), newVersion())
	strict(root)
	return root
}
