package clients

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"calla/scripts/process"
)

// root is the repository's, seen from this package.
const root = "../.."

// served is the process that all tests of the package talk to.
var served *process.Server

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
	bin, err := process.Binary(root, dir)
	if err != nil {
		return 0, err
	}
	var log bytes.Buffer
	defer func() {
		if code != 0 || err != nil {
			os.Stderr.Write(log.Bytes())
		}
	}()
	if served, err = process.Start(&log, bin, "serve", "--model", "demo", "--port", "0"); err != nil {
		return 0, err
	}
	code = m.Run()
	return code, served.Interrupt()
}
