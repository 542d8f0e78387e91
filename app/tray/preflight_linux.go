package tray

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// ErrNoPanel is a desktop that shows no icons, or none yet: a panel may come
// later than programs that start with it.
var ErrNoPanel = errors.New("tray: no panel of this desktop shows icons (nobody is org.kde.StatusNotifierWatcher)")

// Preflight says why a menu can't be shown. It has to come before Run: without
// a display GTK ends the process by itself.
func Preflight(getenv func(string) string) error {
	x, wayland := getenv("DISPLAY"), getenv("WAYLAND_DISPLAY")
	if x == "" && wayland == "" {
		return errors.New("tray: no display: neither DISPLAY nor WAYLAND_DISPLAY is set")
	}
	if wayland == "" {
		if err := dial(x); err != nil {
			return fmt.Errorf("tray: the display %s does not answer: %w", x, err)
		}
	}
	return watched(getenv)
}

// watched looks for somebody on the session bus who shows icons.
func watched(getenv func(string) string) error {
	address := getenv("DBUS_SESSION_BUS_ADDRESS")
	if address == "" {
		// Not by the library's own way: that starts a bus which stays behind.
		address = "unix:path=" + getenv("XDG_RUNTIME_DIR") + "/bus"
	}
	conn, err := dbus.Connect(address)
	if err != nil {
		return fmt.Errorf("tray: no D-Bus session bus: %w", err)
	}
	defer conn.Close()
	var owned bool
	err = conn.BusObject().Call("org.freedesktop.DBus.NameHasOwner", 0, "org.kde.StatusNotifierWatcher").Store(&owned)
	if err != nil {
		return fmt.Errorf("tray: the D-Bus session bus: %w", err)
	}
	if !owned {
		return ErrNoPanel
	}
	return nil
}

// dial tries a display of this machine.
func dial(display string) error {
	host, number, ok := strings.Cut(display, ":")
	if !ok {
		return errors.New("want host:number")
	}
	if host != "" && host != "unix" {
		return nil // of another machine: left to GTK
	}
	number, _, _ = strings.Cut(number, ".")
	var err error
	for _, at := range []string{"/tmp/.X11-unix/X" + number, "@/tmp/.X11-unix/X" + number} {
		var c net.Conn
		if c, err = net.DialTimeout("unix", at, 2*time.Second); err == nil {
			return c.Close()
		}
	}
	return err
}
