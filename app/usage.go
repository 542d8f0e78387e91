package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// strict has every command below root refuse arguments that it does not take as it
// refuses a wrong flag, those that cobra adds among them.
func strict(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "help" {
			cmd.Args = topics
		}
	}
	refuse(root)
}

func refuse(cmd *cobra.Command) {
	takes := cmd.Args
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if err := takes(cmd, args); err != nil {
			return usageError{fmt.Errorf("%w; %s --help says what it takes", err, cmd.CommandPath())}
		}
		return nil
	}
	if !cmd.Runnable() { // its help would come before a look at the arguments
		cmd.RunE = func(cmd *cobra.Command, _ []string) error { return cmd.Help() }
	}
	for _, c := range cmd.Commands() {
		refuse(c)
	}
}

// topics are the arguments of calla help: the names of a command.
func topics(cmd *cobra.Command, args []string) error {
	_, rest, err := cmd.Root().Find(args)
	if err == nil && len(rest) > 0 {
		err = fmt.Errorf("no command is called %q", strings.Join(args, " "))
	}
	return err
}
