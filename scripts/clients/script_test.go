package clients

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
)

// scripted is a client in another language: a process that reads a request a
// line, answers each with a line and ends with its input. To a request for
// models (the word "models" in place of an object) it answers with their ids.
type scripted struct {
	in  io.Writer
	out *bufio.Reader
}

// script returns what opens a client that an interpreter runs. The environment
// variable names the interpreter; without it the test is skipped.
func script(variable, file string) func(*testing.T, string) client {
	return func(t *testing.T, url string) client {
		t.Helper()
		interpreter := os.Getenv(variable)
		if interpreter == "" {
			t.Skipf("needs %s, an interpreter with the packages that the client is made of: run scripts/test", variable)
		}
		cmd := exec.Command(interpreter, file, url)
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
			t.Fatalf("start %s: %v", file, err)
		}
		t.Cleanup(func() {
			in.Close()
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		})
		return &scripted{in: in, out: bufio.NewReader(out)}
	}
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
