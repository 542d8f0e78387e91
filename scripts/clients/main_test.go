package clients

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// root is the repository's, seen from this package.
const root = "../.."

// served is the process that all tests of the package talk to.
var served *server

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintf(os.Stderr, "clients: %v\n", err)
		code = 1
	}
	os.Exit(code)
}

// run runs the tests against a server of their own, and prints its log where
// something failed.
func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "calla-clients-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	bin, err := binary(dir)
	if err != nil {
		return 0, err
	}
	var log bytes.Buffer
	defer func() {
		if code != 0 || err != nil {
			os.Stderr.Write(log.Bytes())
		}
	}()
	if served, err = serve(&log, bin, "serve", "--model", "demo", "--port", "0"); err != nil {
		return 0, err
	}
	code = m.Run()
	return code, served.interrupt()
}

// binary returns the calla to test: the one that CALLA_BINARY names, or one
// built into dir.
func binary(dir string) (string, error) {
	if bin := os.Getenv("CALLA_BINARY"); bin != "" {
		return filepath.Abs(bin)
	}
	bin := filepath.Join(dir, "calla")
	build := exec.Command("go", "build", "-o", bin, "./app")
	build.Dir = root
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build calla: %w\n%s", err, out)
	}
	return bin, nil
}
