package main

import (
	"bytes"
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"calla/app/supervise"
)

// answer runs the program with arguments and returns its exit status and what it
// prints and says.
func answer(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&out)
	root.SetErr(&out)
	if err := root.ExecuteContext(context.Background()); err != nil {
		return status(err), out.String() + err.Error()
	}
	return 0, out.String()
}

// Every command there is answers a wrong flag and arguments that it does not take
// with the status of wrong usage, before anything else.
func TestCommandsRefuse(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		path := strings.Fields(cmd.CommandPath())[1:]
		wrong := [][]string{{"--no-such-flag"}, {"one", "two", "three"}}
		if cmd.Name() == "chat" { // which takes all of a message
			wrong = wrong[:1]
		}
		for _, args := range wrong {
			args = append(slices.Clone(path), args...)
			t.Run(strings.Join(args, " "), func(t *testing.T) {
				if got, text := answer(t, args...); got != supervise.ExitUsage || text == "" {
					t.Errorf("exit status %d, want %d; it said %s", got, supervise.ExitUsage, text)
				}
			})
		}
		for _, c := range cmd.Commands() {
			walk(c)
		}
	}
	walk(newRoot())
}

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	none := filepath.Join(dir, "none", "file")
	for _, tt := range []struct {
		args   string
		status int
		says   string
	}{
		{"", 0, "calla [command]"},
		{"--help", 0, "calla [command]"},
		{"model", 0, "calla model [command]"},
		{"help eval", 0, "--tokens"},
		{"version", 0, "calla "},
		{"bogus", 64, `"bogus"`},
		{"model bogus", 64, `"bogus" for "calla model"`},
		{"help bogus", 64, `"bogus"`},
		{"completion bogus", 64, `"bogus"`},
		{"serve extra", 64, `"extra" for "calla serve"`},
		{"contract", 64, "accepts 1 arg"},
		{"eval", 64, `"tokens" not set`},
		{"eval --tokens a", 64, "want token ids separated by commas"},
		{"eval --tokens 1,,2", 64, "want token ids separated by commas"},
		{"eval --tokens -1", 64, "want token ids separated by commas"},
		{"eval --tokens 1 --steps 0", 64, "want a whole number, 1–1048576"},
		{"eval --tokens 1 --steps 999999999", 64, "want a whole number, 1–1048576"},
		{"eval --tokens 1 --prefill-chunk 1", 64, "want a multiple of 64, 64–65536"},
		{"eval --tokens 1 --prefill-chunk 6400000000", 64, "want a multiple of 64, 64–65536"},
		{"pull --connections 0", 64, "want a whole number, 1–64"},
		{"pull --pause --resume", 64, "[pause resume]"},
		{"serve --log-file " + none, 64, "no such file or directory"},
		{"doctor --gpu --backend cpu --report " + none, 64, "is no GPU"},
		{"doctor --gpu --report " + none, 64, "no such file or directory"},
		{"doctor --gpu --report " + dir, 64, "is a directory"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			got, text := answer(t, strings.Fields(tt.args)...)
			if got != tt.status || !strings.Contains(text, tt.says) {
				t.Errorf("exit status %d, want %d with %q; it said %s", got, tt.status, tt.says, text)
			}
		})
	}
}
