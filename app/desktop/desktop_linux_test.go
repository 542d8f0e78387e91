package desktop

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// programs makes a PATH of fakes that note how they were called. Each exits
// with its status.
func programs(t *testing.T, status map[string]int) (notes func() string) {
	t.Helper()
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	for name, s := range status {
		script := fmt.Sprintf("#!/bin/sh\n{ printf '%%s' %s; printf '|%%s' \"$@\"; printf '<'; /bin/cat; printf '>\\n'; } >>%s\nexit %d\n", name, log, s)
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("WAYLAND_DISPLAY", "")
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	return func() string {
		text, _ := os.ReadFile(log)
		return strings.TrimSpace(string(text))
	}
}

func TestPrograms(t *testing.T) {
	ask := func() error {
		yes, err := New().Ask("Remove?", "20 GB", "Remove")
		if err == nil && !yes {
			err = fmt.Errorf("no")
		}
		return err
	}
	for _, tt := range []struct {
		name   string
		status map[string]int
		do     func() error
		want   string // how the program is called
		err    string
	}{
		{"yes by zenity", map[string]int{"zenity": 0, "xmessage": 0}, ask,
			"zenity|--question|--no-markup|--title|Remove?|--text|Remove?\n\n20 GB|--ok-label|Remove|--cancel-label|Cancel<>", ""},
		{"no by zenity", map[string]int{"zenity": 1}, ask,
			"zenity|--question|--no-markup|--title|Remove?|--text|Remove?\n\n20 GB|--ok-label|Remove|--cancel-label|Cancel<>", "no"},
		{"yes by xmessage", map[string]int{"xmessage": 0}, ask, "xmessage|-center|-buttons|Remove:0,Cancel:1|Remove?\n\n20 GB<>", ""},
		{"nobody asks", nil, ask, "", "desktop: no program asks questions: install zenity, kdialog or xmessage"},
		{"tell", map[string]int{"kdialog": 0}, func() error { return New().Tell("a", "b") }, "kdialog|--title|a|--msgbox|a\n\nb<>", ""},
		{"copy", map[string]int{"xclip": 0}, func() error { return New().Copy("http://x") }, "xclip|-selection|clipboard<http://x>", ""},
		{"copy without a program", nil, func() error { return New().Copy("x") }, "",
			"desktop: no program for the clipboard: install wl-clipboard, xclip or xsel"},
		{"copy fails", map[string]int{"xsel": 1}, func() error { return New().Copy("x") }, "xsel|--clipboard|--input<x>", "desktop: xsel: exit status 1"},
		{"open", map[string]int{"xdg-open": 0}, func() error { return New().Open("/a/log") }, "xdg-open|/a/log<>", ""},
		{"open without a program", nil, func() error { return New().Open("/a/log") }, "", "desktop: xdg-open is missing: install xdg-utils"},
		{"reveal without a file manager on the bus", map[string]int{"xdg-open": 0}, func() error { return New().Reveal("/a/model") }, "xdg-open|/a<>", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			notes := programs(t, tt.status)
			says := ""
			if err := tt.do(); err != nil {
				says = err.Error()
			}
			if says != tt.err {
				t.Errorf("error %q, want %q", says, tt.err)
			}
			if got := notes(); got != tt.want {
				t.Errorf("called\n%s\nwant\n%s", got, tt.want)
			}
		})
	}
}
