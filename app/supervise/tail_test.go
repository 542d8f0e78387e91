package supervise

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

func TestReason(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want string
	}{
		{"nothing", nil, ""},
		{"the last line", []string{"a\nb\n"}, "b"},
		{"the program's name is not said", []string{"calla: no luck\n"}, "no luck"},
		{"without a line end", []string{"a\nb"}, "b"},
		{"in pieces", []string{"a\nno ", "lu", "ck\n"}, "no luck"},
		{"blank lines after it", []string{"b\n\n \n"}, "b"},
		{"a panic and its trace", []string{"x\npanic: oh\n\ngoroutine 1 [running]:\nmain.main()\n"}, "panic: oh"},
		{"a long line", []string{strings.Repeat("x", 3*tailWidth) + "\n"}, strings.Repeat("x", tailWidth)},
		{"a panic in a flood", []string{strings.Repeat("noise\n", 5*tailLines), "panic: oh\n"}, "panic: oh"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var log bytes.Buffer
			tl := &tail{log: &log}
			for _, p := range tt.in {
				if n, err := tl.Write([]byte(p)); n != len(p) || err != nil {
					t.Fatalf("Write = %d, %v", n, err)
				}
			}
			if got := tl.reason(); got != tt.want {
				t.Errorf("reason = %q, want %q", got, tt.want)
			}
			if want := strings.Join(tt.in, ""); log.String() != want {
				t.Errorf("the log has %d bytes, want %d", log.Len(), len(want))
			}
		})
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestFullDiskDoesNotEndTheChild(t *testing.T) {
	if n, err := (&tail{log: full{}}).Write([]byte("x\n")); n != 2 || err != nil {
		t.Errorf("Write = %d, %v", n, err)
	}
}
