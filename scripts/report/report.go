package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// event is a line of go test -json, as go doc test2json has it.
type event struct {
	Action  string
	Package string // empty for a build
	Test    string // empty for the package itself
	Output  string
}

// name is the package, or the test in it.
func (e event) name() string {
	if e.Test == "" {
		return e.Package
	}
	return e.Package + "." + e.Test
}

// report sums up a run of go test.
type report struct {
	out     io.Writer
	output  map[string]*strings.Builder // of tests still running, by name
	failed  []string
	skipped []string // name and reason
	passed  int
	// blamed are the packages in which a test failed: their own failure says
	// nothing new.
	blamed map[string]bool
}

func newReport(out io.Writer) *report {
	return &report{out: out, output: map[string]*strings.Builder{}, blamed: map[string]bool{}}
}

// read takes in events until the end of in. A line that is no event, such as
// one that a build writes, is printed as it is.
func (r *report) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				fmt.Fprintf(r.out, "%s", line)
			} else {
				r.add(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read events: %w", err)
		}
	}
}

func (r *report) add(e event) {
	switch e.Action {
	case "output", "build-output":
		r.print(e)
	case "pass":
		if e.Test != "" {
			r.passed++
		}
		delete(r.output, e.name())
	case "skip":
		if e.Test != "" {
			r.skipped = append(r.skipped, e.name()+": "+reason(r.take(e.name())))
		}
	case "fail":
		r.fail(e)
	}
}

// print passes a package's own lines on and keeps a test's until it has ended,
// without those that tell which test is running.
func (r *report) print(e event) {
	if strings.HasPrefix(e.Output, "=== ") {
		return
	}
	if e.Test == "" {
		if e.Output != "PASS\n" && e.Output != "FAIL\n" {
			fmt.Fprint(r.out, e.Output)
		}
		return
	}
	b := r.output[e.name()]
	if b == nil {
		b = new(strings.Builder)
		r.output[e.name()] = b
	}
	b.WriteString(e.Output)
}

func (r *report) fail(e event) {
	if e.Test != "" {
		r.blamed[e.Package] = true
		fmt.Fprint(r.out, r.take(e.name()))
	} else {
		r.unfinished(e.Package)
		if r.blamed[e.Package] {
			return
		}
	}
	r.failed = append(r.failed, e.name())
}

// unfinished prints what the tests of a package that broke off had written.
func (r *report) unfinished(pkg string) {
	for name := range r.output {
		if strings.HasPrefix(name, pkg+".") {
			fmt.Fprint(r.out, r.take(name))
		}
	}
}

// take returns the output of a test that has ended.
func (r *report) take(name string) string {
	b := r.output[name]
	if b == nil {
		return ""
	}
	delete(r.output, name)
	return b.String()
}

// reason is what a test said when it was skipped: its output without the lines
// of the test runner.
func reason(output string) string {
	var said []string
	for line := range strings.Lines(output) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}

// close prints the summary and says whether tests ran and none failed.
func (r *report) close() bool {
	for _, s := range r.skipped {
		fmt.Fprintf(r.out, "skipped: %s\n", s)
	}
	for _, f := range r.failed {
		fmt.Fprintf(r.out, "failed: %s\n", f)
	}
	fmt.Fprintf(r.out, "%d passed, %d failed, %d skipped\n", r.passed, len(r.failed), len(r.skipped))
	return r.passed > 0 && len(r.failed) == 0
}
