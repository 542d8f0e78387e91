//go:build linux

// Package traytest is a desktop for tests: a display that nobody sees, a
// message bus, and somebody who shows tray icons, reads their menus and clicks
// in them as a panel does. Nothing in it depends on a desktop that runs.
package traytest

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"
)

// Session is a display and a bus of its own.
type Session struct {
	// Env is what a program needs to be part of it.
	Env  []string
	Conn *dbus.Conn

	processes []*exec.Cmd
}

// Start makes a session. It needs Xvfb and dbus-daemon.
func Start() (*Session, error) {
	s := &Session{}
	number, err := s.spawn("Xvfb", "-displayfd", "3", "-screen", "0", "900x700x24", "-nolisten", "tcp", "-noreset")
	if err != nil {
		s.Close()
		return nil, err
	}
	address, err := s.spawn("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=3")
	if err != nil {
		s.Close()
		return nil, err
	}
	s.Env = []string{
		"DISPLAY=:" + number, "DBUS_SESSION_BUS_ADDRESS=" + address, "GDK_BACKEND=x11", "WAYLAND_DISPLAY=",
		"NO_AT_BRIDGE=1", "GTK_A11Y=none", "GSETTINGS_BACKEND=memory", "LC_ALL=C.UTF-8",
	}
	if s.Conn, err = dbus.Connect(address); err != nil {
		s.Close()
		return nil, fmt.Errorf("traytest: %w", err)
	}
	return s, nil
}

// spawn starts a program and returns the first line that it writes to its
// fourth file.
func (s *Session) spawn(name string, args ...string) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	cmd := exec.Command(name, args...)
	cmd.ExtraFiles = []*os.File{w}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return "", fmt.Errorf("traytest: %w", err)
	}
	s.processes = append(s.processes, cmd)
	if err := r.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		return "", err
	}
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("traytest: %s does not start: %w", name, err)
	}
	return strings.TrimSpace(line), nil
}

// Close ends the session and its programs.
func (s *Session) Close() {
	if s.Conn != nil {
		s.Conn.Close()
	}
	for _, p := range s.processes {
		p.Process.Kill()
		p.Wait()
	}
}
