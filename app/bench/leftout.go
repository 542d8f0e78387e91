package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// leftOut collects what does not count, by its reason, so that each is told once.
type leftOut struct {
	reasons []string
	runs    map[string][]string // by reason: at which lengths, how many
	lines   []string            // of lengths refused as a whole
}

// rejected adds runs that do not count. At says where and whose.
func (l *leftOut) rejected(list []Rejected, at string) {
	if l.runs == nil {
		l.runs = map[string][]string{}
	}
	for _, j := range list {
		if !slices.Contains(l.reasons, j.Reason) {
			l.reasons = append(l.reasons, j.Reason)
		}
		l.runs[j.Reason] = append(l.runs[j.Reason], fmt.Sprintf("%s, %s", at, runs(j.Runs)))
	}
}

// refused adds a length without numbers, where the runs that do not count don't
// tell why. Call it after rejected.
func (l *leftOut) refused(why string, tokens int) {
	told := func(reason string) bool { return strings.HasSuffix(why, reason) }
	if why != "" && !slices.ContainsFunc(l.reasons, told) {
		l.lines = append(l.lines, fmt.Sprintf("refused: %d tokens: %s", tokens, why))
	}
}

func (l *leftOut) print(w io.Writer) {
	for _, reason := range l.reasons {
		fmt.Fprintf(w, "not counted: %s\n  (%s)\n", reason, strings.Join(l.runs[reason], "; "))
	}
	for _, line := range l.lines {
		fmt.Fprintln(w, line)
	}
}
