//go:build linux && tray

package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"calla/app/tray/traytest"
	"calla/bundle/demo"
	"calla/core/download"
)

// patience bounds every wait of these tests. What is waited for comes much
// sooner.
const patience = time.Minute

// world is a desktop, a home folder, a server with the demo model as the
// published one, and the real program in the middle of them.
type world struct {
	t       *testing.T
	session *traytest.Session
	panel   *traytest.Panel
	home    string
	origin  *httptest.Server
	gate    chan struct{} // closed when the server may send weights
	power   *logind
	args    []string

	cmd    *exec.Cmd
	out    *said
	exited chan struct{}
	menu   *traytest.Menu
}

var program = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "calla-menu-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "calla")
	cmd := exec.Command("go", "build", "-tags", "tray", "-o", path, ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, out)
	}
	return path, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if path, err := program(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, home: t.TempDir(), gate: make(chan struct{})}
	var err error
	if w.session, err = traytest.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.session.Close)
	w.origin = httptest.NewServer(http.HandlerFunc(w.serveFile))
	t.Cleanup(w.origin.Close)
	t.Cleanup(w.kill)
	w.power = &logind{held: map[*os.File]bool{}}
	if err := w.session.Conn.Export(w.power, "/org/freedesktop/login1", "org.freedesktop.login1.Manager"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.session.Conn.RequestName("org.freedesktop.login1", 0); err != nil {
		t.Fatal(err)
	}
	w.fakeProgram("xclip", "cat >"+w.path("clipboard"))
	w.fakeProgram("xdg-open", `printf '%s\n' "$1" >>`+w.path("opened"))
	w.fakeProgram("zenity", `printf '%s|' "$@" >>`+w.path("asked"))
	return w
}

func (w *world) path(name string) string { return filepath.Join(w.home, name) }

func (w *world) fakeProgram(name, script string) {
	w.t.Helper()
	dir := w.path("bin")
	err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	if err != nil {
		w.t.Fatal(err)
	}
}

// addPanel makes the desktop show icons.
func (w *world) addPanel() {
	w.t.Helper()
	var err error
	if w.panel, err = w.session.NewPanel(); err != nil {
		w.t.Fatal(err)
	}
}

// serveFile is a mirror that has the demo model, and holds back the second half
// of its weights until the gate opens.
func (w *world) serveFile(out http.ResponseWriter, r *http.Request) {
	name := filepath.Base(r.URL.Path)
	f, err := os.Open(filepath.Join("..", "bundle", "demo", name))
	if err != nil {
		http.NotFound(out, r)
		return
	}
	defer f.Close()
	http.ServeContent(out, r, name, time.Time{}, &held{f, w.gate, r.Context().Done()})
}

// held is a file whose bytes beyond half are held back.
type held struct {
	file       *os.File
	gate, gone <-chan struct{}
}

const half = 5 << 20

func (h *held) Seek(at int64, from int) (int64, error) { return h.file.Seek(at, from) }

func (h *held) Read(p []byte) (int, error) {
	at, err := h.file.Seek(0, io.SeekCurrent)
	if err != nil {
		return 0, err
	}
	if at < half {
		p = p[:min(int64(len(p)), half-at)]
		return h.file.Read(p)
	}
	select {
	case <-h.gate:
		return h.file.Read(p)
	case <-h.gone:
		return 0, io.ErrUnexpectedEOF
	}
}

// manifest pins the demo model's files.
func (w *world) manifest() string {
	w.t.Helper()
	m := download.Manifest{Repository: "example/Tiny", Revision: strings.Repeat("0123456789", 4)}
	names, err := demo.Source().List()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join("..", "bundle", "demo", name))
		if err != nil {
			w.t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		m.Files = append(m.Files, download.File{Name: name, Size: int64(len(data)), SHA256: hex.EncodeToString(sum[:])})
	}
	text, err := json.Marshal(m)
	if err := errors.Join(err, os.WriteFile(w.path("manifest.json"), text, 0o644)); err != nil {
		w.t.Fatal(err)
	}
	return w.path("manifest.json")
}

func (w *world) environment() []string {
	env := append(os.Environ(), w.session.Env...)
	return append(env, "HOME="+w.home, "XDG_DATA_HOME="+w.path("data"), "XDG_CONFIG_HOME="+w.path("config"),
		"XDG_STATE_HOME="+w.path("state"), "XDG_CACHE_HOME="+w.path("cache"), "XDG_RUNTIME_DIR=", "HF_HOME="+w.path("hf"),
		"DBUS_SYSTEM_BUS_ADDRESS="+w.address(), "PATH="+w.path("bin")+":"+os.Getenv("PATH"))
}

// address is that of the session's bus, which is the system's too.
func (w *world) address() string {
	for _, e := range w.session.Env {
		if a, ok := strings.CutPrefix(e, "DBUS_SESSION_BUS_ADDRESS="); ok {
			return a
		}
	}
	w.t.Fatal("the session has no bus")
	return ""
}

// command is calla with arguments, on this desktop.
func (w *world) command(args ...string) *exec.Cmd {
	w.t.Helper()
	path, err := program()
	if err != nil {
		w.t.Fatal(err)
	}
	cmd := exec.Command(path, args...)
	cmd.Env = w.environment()
	return cmd
}

// open starts the app.
func (w *world) open(args ...string) {
	w.t.Helper()
	w.cmd, w.out, w.exited = w.command(append([]string{"menu"}, args...)...), &said{}, make(chan struct{})
	w.cmd.Stdout, w.cmd.Stderr = w.out, w.out
	if err := w.cmd.Start(); err != nil {
		w.t.Fatal(err)
	}
	go func(cmd *exec.Cmd, exited chan struct{}) {
		cmd.Wait()
		close(exited)
	}(w.cmd, w.exited)
	if w.panel == nil {
		return
	}
	ctx, cancel := w.context()
	defer cancel()
	var err error
	if w.menu, err = w.panel.Menu(ctx); err != nil {
		w.t.Fatal(err)
	}
	w.see("Quit Calla")
}

func (w *world) context() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

func (w *world) kill() {
	if w.cmd != nil {
		w.cmd.Process.Kill()
		<-w.exited
	}
	if w.t.Failed() {
		log, _ := os.ReadFile(w.path("state/calla/calla.log"))
		preferences, _ := os.ReadFile(w.path("config/calla/preferences.txt"))
		w.t.Logf("log:\n%s\npreferences:\n%s", log, preferences)
	}
}

// said is what the app prints.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// see waits for a line and returns the menu.
func (w *world) see(path ...string) traytest.Line {
	w.t.Helper()
	return w.seeThat(strings.Join(path, " > "), func(l traytest.Line) bool { _, ok := l.Find(path...); return ok })
}

func (w *world) seeThat(what string, ok func(traytest.Line) bool) traytest.Line {
	w.t.Helper()
	ctx, cancel := w.context()
	defer cancel()
	root, err := w.menu.Until(ctx, what, ok)
	if err != nil {
		w.t.Fatal(err)
	}
	return root
}

func (w *world) click(path ...string) {
	w.t.Helper()
	if err := w.menu.Click(path...); err != nil {
		w.t.Fatal(err)
	}
}

// quit clicks Quit, which the app may be too quick to confirm.
func (w *world) quit() {
	if err := w.menu.Click("Quit Calla"); err != nil {
		w.t.Logf("quit: %v", err)
	}
}

// restart has another engine with the changed preferences. It has another port,
// by which the menu tells that it shows the new one.
func (w *world) restart() {
	w.t.Helper()
	before, _ := w.see("Restart Engine to Apply Changes").Find("Address:")
	w.click("Restart Engine to Apply Changes")
	w.seeThat("another engine", func(l traytest.Line) bool {
		_, ready := l.Find("Calla: Ready")
		now, _ := l.Find("Address:")
		return ready && now.Label != before.Label
	})
}

// base is the address that Copy Address copies.
func (w *world) base() string {
	w.t.Helper()
	os.Remove(w.path("clipboard"))
	w.click("Copy Address")
	return w.file("clipboard")
}

// file waits until a file has something in it.
func (w *world) file(name string) string {
	w.t.Helper()
	var text []byte
	w.wait(name, func() bool {
		text, _ = os.ReadFile(w.path(name))
		return len(text) > 0
	})
	return string(text)
}

func (w *world) wait(what string, ok func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("never saw %s", what)
		}
	}
}

// engine is the process of the engine, 0 where there is none.
func (w *world) engine() int {
	names, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", w.cmd.Process.Pid))
	for _, name := range names {
		text, _ := os.ReadFile(name)
		for _, field := range strings.Fields(string(text)) {
			command, _ := os.ReadFile("/proc/" + field + "/cmdline")
			if strings.Contains(string(command), "\x00serve\x00") {
				pid, _ := strconv.Atoi(field)
				return pid
			}
		}
	}
	return 0
}

func (w *world) gone(pid int) {
	w.t.Helper()
	w.wait(fmt.Sprintf("the end of process %d", pid), func() bool { return syscall.Kill(pid, 0) != nil || zombie(pid) })
}

func zombie(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// ended waits for the app's end and wants its status.
func (w *world) ended(status int) {
	w.t.Helper()
	select {
	case <-w.exited:
	case <-time.After(patience):
		w.t.Fatal("the app does not end")
	}
	if got := w.cmd.ProcessState.ExitCode(); got != status {
		w.t.Errorf("exit status %d, want %d; it said %s", got, status, w.out)
	}
}

// logind is that of systemd, as far as it knows who wants the machine awake.
type logind struct {
	mu   sync.Mutex
	held map[*os.File]bool
	ever int
}

// Inhibit is called over D-Bus. What is returned is one end of a pipe, whose
// other end tells when it is closed.
func (p *logind) Inhibit(what, who, why, mode string) (dbus.UnixFD, *dbus.Error) {
	r, out, err := os.Pipe()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	p.mu.Lock()
	if mode == "block" { // a delay is the engine's, which wants to hear of sleep
		p.held[r] = true
		p.ever++
	}
	p.mu.Unlock()
	fd, err := syscall.Dup(int(out.Fd()))
	out.Close()
	if err != nil {
		return 0, dbus.MakeFailedError(err)
	}
	time.AfterFunc(time.Second, func() { syscall.Close(fd) }) // ours; the caller has its own by then
	go func() {
		r.Read(make([]byte, 1)) // until nobody has the other end
		p.mu.Lock()
		delete(p.held, r)
		p.mu.Unlock()
		r.Close()
	}()
	return dbus.UnixFD(fd), nil
}

// holders is how many wishes to stay awake there are, and how many there were.
func (p *logind) holders() (now, ever int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.held), p.ever
}
