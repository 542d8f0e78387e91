package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const pass = `{"Action":"run","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Test":"TestA","Output":"chatter\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
`
	for _, tt := range []struct {
		name   string
		events string
		ok     bool
		want   []string // the lines of the output
	}{
		{
			name: "all passed",
			events: pass + `{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`,
			ok: true, want: []string{"ok  \tp\t0.1s", "1 passed, 0 failed, 0 skipped"},
		},
		{
			name: "a test failed",
			events: pass + `{"Action":"output","Package":"p","Test":"TestB/x","Output":"    b_test.go:1: got 1, want 2\n"}
{"Action":"fail","Package":"p","Test":"TestB/x"}
{"Action":"fail","Package":"p"}
`,
			want: []string{"    b_test.go:1: got 1, want 2", "failed: p.TestB/x", "1 passed, 1 failed, 0 skipped"},
		},
		{
			name: "a test was skipped",
			events: pass + `{"Action":"output","Package":"p","Test":"TestB","Output":"=== RUN   TestB\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:1: needs a Mac\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
`,
			ok: true, want: []string{"skipped: p.TestB: b_test.go:1: needs a Mac", "1 passed, 0 failed, 1 skipped"},
		},
		{
			name: "a package has no tests",
			events: pass + `{"Action":"skip","Package":"q"}
`,
			ok: true, want: []string{"1 passed, 0 failed, 0 skipped"},
		},
		{
			name: "a package does not build",
			events: pass + `{"ImportPath":"q","Action":"build-output","Output":"q/a.go:1: undefined: x\n"}
{"ImportPath":"q","Action":"build-fail"}
{"Action":"fail","Package":"q","FailedBuild":"q"}
`,
			want: []string{"q/a.go:1: undefined: x", "failed: q", "1 passed, 1 failed, 0 skipped"},
		},
		{
			name: "a test binary died in a test",
			events: pass + `{"Action":"output","Package":"q","Test":"TestC","Output":"panic: boom\n"}
{"Action":"fail","Package":"q"}
`,
			want: []string{"panic: boom", "failed: q", "1 passed, 1 failed, 0 skipped"},
		},
		{
			name:   "a line that is no event",
			events: "go: downloading m v1\n" + pass,
			ok:     true, want: []string{"go: downloading m v1", "1 passed, 0 failed, 0 skipped"},
		},
		{name: "nothing ran", events: "", want: []string{"0 passed, 0 failed, 0 skipped"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out strings.Builder
			r := newReport(&out)
			if err := r.read(strings.NewReader(tt.events)); err != nil {
				t.Fatal(err)
			}
			if ok := r.close(); ok != tt.ok {
				t.Errorf("close() = %t, want %t", ok, tt.ok)
			}
			if got, want := out.String(), strings.Join(tt.want, "\n")+"\n"; got != want {
				t.Errorf("output:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}
