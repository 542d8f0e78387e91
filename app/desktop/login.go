package desktop

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"calla/app/whole"
)

// Login is being started when people log in, by a file that the system reads.
// The file is the truth: other programs, and people, remove it too.
type Login struct {
	path    string
	content string
	refused string
}

// ErrRefused is a place from which a program can't be started at login.
var ErrRefused = errors.New("desktop: not from here")

// NewLogin returns the login item of a program, by the rules of this system.
func NewLogin(program string, getenv func(string) string, home string) Login {
	if runtime.GOOS == "darwin" {
		return launchAgent(program, home)
	}
	return autostart(program, getenv("XDG_CONFIG_HOME"), home)
}

// launchAgent is macOS's: started at login, and not again after people quit it.
func launchAgent(program, home string) Login {
	l := Login{path: filepath.Join(home, "Library", "LaunchAgents", agent+".plist"), refused: badPlace(program)}
	l.content = `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<plist version="1.0">
<dict>
	<key>Label</key><string>` + agent + `</string>
	<key>ProgramArguments</key>
	<array><string>` + escaped(program) + `</string><string>menu</string></array>
	<key>RunAtLoad</key><true/>
	<key>ProcessType</key><string>Interactive</string>
	<key>LimitLoadToSessionType</key><string>Aqua</string>
</dict>
</plist>
`
	return l
}

// agent names the login item; it is the bundle's identifier.
const agent = "org.calla.Calla"

func escaped(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(s)); err != nil {
		panic(err) // a buffer takes everything
	}
	return b.String()
}

// badPlace says why a program can't be started again from where it is.
func badPlace(program string) string {
	switch {
	case strings.Contains(program, "/AppTranslocation/"), strings.HasPrefix(program, "/Volumes/"):
		return "move Calla to the Applications folder first"
	case !filepath.IsAbs(program):
		return "it is not known where Calla is"
	}
	return ""
}

// autostart is that of desktops that keep to XDG.
func autostart(program, config, home string) Login {
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	quoted := strings.NewReplacer(`\`, `\\\\`, `"`, `\\"`, "`", "\\\\`", "$", `\\$`, "%", "%%").Replace(program)
	return Login{
		path: filepath.Join(config, "autostart", "calla.desktop"), refused: badPlace(program),
		content: "[Desktop Entry]\nType=Application\nName=Calla\nExec=\"" + quoted + "\" menu\nX-GNOME-Autostart-enabled=true\n",
	}
}

// State reads the file. refused says why it can't be changed, in words.
func (l Login) State() (on bool, refused string, err error) {
	text, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, l.refused, nil
	}
	if err != nil {
		return false, l.refused, fmt.Errorf("desktop: login item: %w", err)
	}
	// A file that starts another Calla is not ours: this one is off.
	return string(text) == l.content, l.refused, nil
}

// Set writes the file, or removes it.
func (l Login) Set(on bool) error {
	if !on {
		if err := os.Remove(l.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("desktop: login item: %w", err)
		}
		return nil
	}
	if l.refused != "" {
		return fmt.Errorf("%w: %s", ErrRefused, l.refused)
	}
	if err := os.MkdirAll(filepath.Dir(l.path), 0o755); err != nil {
		return fmt.Errorf("desktop: login item: %w", err)
	}
	if err := whole.WriteText(l.path, 0o644, l.content); err != nil {
		return fmt.Errorf("desktop: login item: %w", err)
	}
	return nil
}
