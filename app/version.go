package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is the release; scripts/build may set another with -ldflags.
var version = "0.1.0"

// revision returns the commit the binary was built from, where Go knows it.
func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	var rev, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	return rev + dirty
}

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s := "calla " + version
			if r := revision(); r != "" {
				s += " (" + r + ")"
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %s/%s %s\n", s, runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}
