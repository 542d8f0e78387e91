package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// scripted is a client in another language: a process that reads a request a
// line, answers each with a line and ends with its input. To a request for
// models (the word "models" in place of an object) it answers with their ids.
type scripted struct {
	in  io.Writer
	out *bufio.Reader
}

// python returns what opens a client in Python.
func python(file string) func(*testing.T, string) client {
	return func(t *testing.T, url string) client {
		t.Helper()
		return start(t, exec.Command(need(t, "CALLA_CLIENTS_PYTHON"), "-B", file, url))
	}
}

// node returns what opens a client in JavaScript. Modules are looked for beside
// the script alone, so a copy of it is run beside them.
func node(file string) func(*testing.T, string) client {
	return func(t *testing.T, url string) client {
		t.Helper()
		modules, dir := need(t, "CALLA_NODE_MODULES"), t.TempDir()
		if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{file, "lines.mjs"} {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return start(t, exec.Command("node", filepath.Join(dir, file), url))
	}
}

// need returns what an environment variable names; without it the test is
// skipped.
func need(t *testing.T, variable string) string {
	t.Helper()
	value := os.Getenv(variable)
	if value == "" {
		t.Skipf("needs %s, which scripts/test sets to the packages that the client is made of", variable)
	}
	return value
}

// start starts a script for the length of a test.
func start(t *testing.T, cmd *exec.Cmd) client {
	t.Helper()
	cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1,localhost,::1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("start %v: %v", cmd.Args, err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("%v: %v", cmd.Args, err)
		}
	})
	return &scripted{in: in, out: bufio.NewReader(out)}
}

func (s *scripted) models(ctx context.Context) (ids []string, err error) {
	return ids, s.ask(ctx, "models", &ids)
}

func (s *scripted) chat(ctx context.Context, r request) (got reply, err error) {
	return got, s.ask(ctx, r, &got)
}

// ask sends a question and reads the answer. The context is not looked at: a
// script has time-outs of its own.
func (s *scripted) ask(_ context.Context, question, answer any) error {
	if err := json.NewEncoder(s.in).Encode(question); err != nil {
		return fmt.Errorf("write to the script: %w", err)
	}
	line, err := s.out.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("read from the script: %w", err)
	}
	if err := json.Unmarshal(line, answer); err != nil {
		return fmt.Errorf("the script's answer %q: %w", line, err)
	}
	return nil
}
