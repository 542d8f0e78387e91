// Command report reads what go test -json writes and prints what a person
// wants of it: a line for each package, the output of each test that failed,
// why tests were skipped and, last, how many passed, failed and were skipped.
//
//	go test -json ./... | go run ./scripts/report
//
// It exits with 1 where a test or a package failed or none ran.
package main

import (
	"fmt"
	"os"
)

func main() {
	r := newReport(os.Stdout)
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintf(os.Stderr, "report: %v\n", err)
		os.Exit(1)
	}
	if !r.close() {
		os.Exit(1)
	}
}
