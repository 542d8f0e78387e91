package desktop

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestLogin(t *testing.T) {
	for _, tt := range []struct {
		name string
		make func(program, home string) Login
		file string
		want []string
	}{
		{"macOS", launchAgent, "Library/LaunchAgents/org.calla.Calla.plist",
			[]string{"<key>RunAtLoad</key><true/>", "<string>/Applications/Calla &amp; Co.app/Contents/MacOS/calla</string>"}},
		{"Linux", func(program, home string) Login { return autostart(program, "", home) }, ".config/autostart/calla.desktop",
			[]string{`Exec="/Applications/Calla & Co.app/Contents/MacOS/calla" menu`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			home := t.TempDir()
			l := tt.make("/Applications/Calla & Co.app/Contents/MacOS/calla", home)
			check(t, l, false)
			if err := l.Set(true); err != nil {
				t.Fatal(err)
			}
			check(t, l, true)
			text, err := os.ReadFile(filepath.Join(home, tt.file))
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range tt.want {
				if !strings.Contains(string(text), w) {
					t.Errorf("no %q in\n%s", w, text)
				}
			}
			if strings.Contains(string(text), "KeepAlive") {
				t.Error("KeepAlive would undo Quit")
			}
			// The file of another Calla is not this one's.
			check(t, tt.make("/elsewhere/calla", home), false)
			for range 2 {
				if err := l.Set(false); err != nil {
					t.Fatal(err)
				}
				check(t, l, false)
			}
		})
	}
}

func check(t *testing.T, l Login, want bool) {
	t.Helper()
	on, refused, err := l.State()
	if on != want || refused != "" || err != nil {
		t.Errorf("State = %v, %q, %v; want %v", on, refused, err, want)
	}
}

func TestLaunchAgentIsXML(t *testing.T) {
	d := xml.NewDecoder(strings.NewReader(launchAgent("/a<b>&\"c\"/calla", "/home").content))
	for {
		if _, err := d.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestLoginRefused(t *testing.T) {
	for _, program := range []string{
		"/private/var/folders/x/AppTranslocation/1234/d/Calla.app/Contents/MacOS/calla",
		"/Volumes/Calla/Calla.app/Contents/MacOS/calla",
		"calla",
	} {
		home := t.TempDir()
		l := launchAgent(program, home)
		if _, refused, _ := l.State(); refused == "" {
			t.Errorf("%s is not refused", program)
		}
		if err := l.Set(true); !errors.Is(err, ErrRefused) {
			t.Errorf("Set from %s: %v, want ErrRefused", program, err)
		}
		if left, _ := filepath.Glob(home + "/*"); len(left) > 0 {
			t.Errorf("%s leaves %v", program, left)
		}
	}
}
