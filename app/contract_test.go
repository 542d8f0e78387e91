package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"calla/core/server/contract"
)

// serveFor runs calla serve for the length of a test and returns its address.
func serveFor(t *testing.T, s serveFlags) (url string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := s.serve(ctx, in, slog.New(slog.DiscardHandler))
		in.CloseWithError(err)
		ended <- err
	}()
	lines := bufio.NewScanner(out)
	for url == "" && lines.Scan() {
		url, _ = strings.CutPrefix(lines.Text(), "listening on ")
	}
	if url == "" {
		t.Fatalf("no address: %v", <-ended)
	}
	go io.Copy(io.Discard, out)
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return url
}

// contractOf runs the command and returns what it printed.
func contractOf(t *testing.T, args ...string) (out []byte, err error) {
	t.Helper()
	var b bytes.Buffer
	cmd := newContract()
	cmd.SetOut(&b)
	cmd.SetErr(io.Discard)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	err = cmd.ExecuteContext(t.Context())
	return b.Bytes(), err
}

// The built-in model, served as it is by the real engine, keeps the contract.
func TestContractOfDemo(t *testing.T) {
	const key = "a-key-of-the-contract"
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveFlags{settings: demoSettings(), host: "localhost", keyFile: file}
	out, err := contractOf(t, "--json", "--key", key, serveFor(t, s))
	if err != nil {
		t.Errorf("contract: %v", err)
	}
	var all []contract.Result
	if err := json.Unmarshal(out, &all); err != nil || len(all) < 200 {
		t.Fatalf("%d results, %v: %.200s", len(all), err, out)
	}
	for _, r := range all {
		if r.Outcome != contract.Pass {
			t.Errorf("%s: %s: %s: %s", r.Outcome, r.Area, r.Name, r.Reason)
		}
	}
}

func TestContractFails(t *testing.T) {
	wrong := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "{}") }))
	defer wrong.Close()
	out, err := contractOf(t, "--model", "any", wrong.URL)
	var status exitCode
	if !errors.As(err, &status) || status != 1 {
		t.Errorf("error %v, want exit status 1", err)
	}
	if s := string(out); !strings.Contains(s, "fail  models") || !strings.Contains(s, " failed, ") {
		t.Errorf("printed %.400s, want the table and a sum", s)
	}
	for _, args := range [][]string{{}, {"a", "b"}, {"no address"}} {
		if _, err := contractOf(t, args...); err == nil {
			t.Errorf("contract %q gives no error", args)
		}
	}
}
