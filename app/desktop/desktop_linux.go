package desktop

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/godbus/dbus/v5"
)

// Here are the words of desktops on Linux.
var Here = Words{Machine: "this machine", FileManager: "File Manager"}

// New returns the desktop, by the programs and services that desktops on Linux
// have in common.
func New() Desktop { return xdg{} }

type xdg struct{}

// dialogs are the programs that ask, in the order of preference.
var dialogs = []struct {
	program   string
	ask, tell func(title, text, button string) []string
}{
	{"zenity",
		func(title, text, button string) []string {
			return []string{"--question", "--no-markup", "--title", title, "--text", title + "\n\n" + text, "--ok-label", button, "--cancel-label", "Cancel"}
		},
		func(title, text, _ string) []string {
			return []string{"--info", "--no-markup", "--title", title, "--text", title + "\n\n" + text}
		}},
	{"kdialog",
		func(title, text, button string) []string {
			return []string{"--title", title, "--yes-label", button, "--no-label", "Cancel", "--yesno", title + "\n\n" + text}
		},
		func(title, text, _ string) []string {
			return []string{"--title", title, "--msgbox", title + "\n\n" + text}
		}},
	{"xmessage",
		func(title, text, button string) []string {
			return []string{"-center", "-buttons", button + ":0,Cancel:1", title + "\n\n" + text}
		},
		func(title, text, _ string) []string { return []string{"-center", title + "\n\n" + text} }},
}

func (xdg) Ask(title, text, button string) (bool, error) {
	for _, d := range dialogs {
		if path, err := exec.LookPath(d.program); err == nil {
			err := exec.Command(path, d.ask(title, text, button)...).Run()
			var no *exec.ExitError
			if errors.As(err, &no) {
				return false, nil
			}
			return err == nil, err
		}
	}
	return false, errors.New("desktop: no program asks questions: install zenity, kdialog or xmessage")
}

func (xdg) Tell(title, text string) error {
	for _, d := range dialogs {
		if path, err := exec.LookPath(d.program); err == nil {
			return exec.Command(path, d.tell(title, text, "")...).Run()
		}
	}
	return errors.New("desktop: no program shows messages: install zenity, kdialog or xmessage")
}

// clipboards are the programs that keep a text for others to paste.
var clipboards = [][]string{
	{"wl-copy"},
	{"xclip", "-selection", "clipboard"},
	{"xsel", "--clipboard", "--input"},
}

func (xdg) Copy(text string) error {
	for _, c := range clipboards {
		if c[0] == "wl-copy" && os.Getenv("WAYLAND_DISPLAY") == "" {
			continue
		}
		path, err := exec.LookPath(c[0])
		if err != nil {
			continue
		}
		cmd := exec.Command(path, c[1:]...)
		cmd.Stdin = strings.NewReader(text)
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("desktop: %s: %w", c[0], err)
		}
		return nil
	}
	return errors.New("desktop: no program for the clipboard: install wl-clipboard, xclip or xsel")
}

func (xdg) Open(target string) error {
	path, err := exec.LookPath("xdg-open")
	if err != nil {
		return errors.New("desktop: xdg-open is missing: install xdg-utils")
	}
	if err := exec.Command(path, target).Run(); err != nil {
		return fmt.Errorf("desktop: xdg-open %s: %w", target, err)
	}
	return nil
}

// Reveal asks the file manager to mark the file, and else opens its folder.
func (d xdg) Reveal(path string) error {
	if conn, err := sessionBus(); err == nil {
		defer conn.Close()
		uri := (&url.URL{Scheme: "file", Path: path}).String()
		files := conn.Object("org.freedesktop.FileManager1", "/org/freedesktop/FileManager1")
		if files.Call("org.freedesktop.FileManager1.ShowItems", 0, []string{uri}, "").Err == nil {
			return nil
		}
	}
	return d.Open(filepath.Dir(path))
}

func sessionBus() (*dbus.Conn, error) {
	address := os.Getenv("DBUS_SESSION_BUS_ADDRESS")
	if address == "" {
		return nil, errors.New("desktop: no session bus")
	}
	return dbus.Connect(address)
}

// Awake takes a lock of logind's, which ends with the file that stands for it.
func (xdg) Awake(reason string) (func(), error) {
	conn, err := dbus.ConnectSystemBus()
	if err != nil {
		return nil, fmt.Errorf("desktop: system bus: %w", err)
	}
	var fd dbus.UnixFD
	login := conn.Object("org.freedesktop.login1", "/org/freedesktop/login1")
	if err := login.Call("org.freedesktop.login1.Manager.Inhibit", 0, "idle:sleep", "Calla", reason, "block").Store(&fd); err != nil {
		conn.Close()
		return nil, fmt.Errorf("desktop: logind: %w", err)
	}
	lock := os.NewFile(uintptr(fd), "inhibit")
	return func() {
		lock.Close()
		conn.Close()
	}, nil
}
